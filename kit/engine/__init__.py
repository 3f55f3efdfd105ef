"""Engine and models put in place from their locks, here or by the measured host itself."""
