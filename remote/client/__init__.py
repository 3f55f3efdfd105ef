"""The measuring client: sends what a window plans and stamps every chunk with the kernel's time."""
