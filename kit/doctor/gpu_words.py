"""What daemon, container toolkit and CUDA say when a container gets no GPU, and what helps.

Invariant: pure; words that are not known keep their own text, with a remedy that finds more.

Sources: CUDA driver API, CUresult; nvidia-container-toolkit, "Troubleshooting"; reports
nvidia-docker#1034 (no device driver), gpustack#4678 (803), vllm#4940 (804), homelab#4110 (driver
exchanged under a running kernel), nvidia-docker#1730 (devices taken away).
"""

from __future__ import annotations

import re

_TOOLKIT = (
    "install nvidia-container-toolkit; sudo nvidia-ctk runtime configure --runtime=docker; "
    "sudo systemctl restart docker"
)
_CDI = (
    "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml; sudo systemctl restart docker; "
    "again after each exchange of the driver"
)
_REBOOT = "reboot the host; then: apt-mark hold the nvidia packages while measuring"
_NEWER = "install a newer driver, or rent a host that has one"
_REDO = "unset CUDA_VISIBLE_DEVICES; else begin the pod anew, or rent another host"
_MORE = "sudo journalctl -u docker -n 50; nvidia-container-cli -k -d /dev/stderr info"

# First match counts; in lower case.
_REFUSALS: tuple[tuple[str, str, str], ...] = (
    ("could not select device driver", "the daemon has no driver for GPUs", _TOOLKIT),
    ("cdi device", "the daemon's list of devices (CDI) does not have the GPUs", _CDI),
    ("unsatisfied condition", "the image needs a newer driver", _NEWER),
    ("version mismatch", "the driver was exchanged under a running kernel", _REBOOT),
    (
        "bpf_prog_query|device filters|device cgroup",
        "the toolkit cannot open the devices in the container's cgroup",
        (
            "no-cgroups in /etc/nvidia-container-runtime/config.toml fits the kind of host; "
            "or: --runtime wheels"
        ),
    ),
    (
        "load library failed|driver not loaded|driver error|nvml error",
        "the toolkit does not find the host's driver",
        "make nvidia-smi work on the host; then: sudo ldconfig; sudo systemctl restart docker",
    ),
    ("nvidia-container|nvidia_container|prestart hook|hook #", "the toolkit fails", _MORE),
    (
        "no space left",
        "the disk under DockerRootDir is full",
        "free space: docker system df, or rent a larger disk",
    ),
)
_CUDA: dict[int, tuple[str, str]] = {
    -1: (
        "the driver's library is not in the container",
        f"the image's NVIDIA_DRIVER_CAPABILITIES must hold compute, or all; then: {_TOOLKIT}",
    ),
    100: ("the container sees no GPU", _TOOLKIT),
    802: (
        "the GPUs wait for the fabric manager",
        "sudo systemctl enable --now nvidia-fabricmanager, of the driver's own version",
    ),
    803: (
        "the driver's library in the container is not of the driver that runs",
        f"{_CDI}; default-runtime in /etc/docker/daemon.json not nvidia (the kit uses --gpus)",
    ),
    804: (
        (
            "forward compatibility, which consumer cards do not have: the image is newer than the "
            "driver"
        ),
        _NEWER,
    ),
    999: (
        "the driver is in a state that it does not explain",
        "sudo rmmod nvidia_uvm; sudo modprobe nvidia_uvm; else reboot the host",
    ),
}
CUDA_PROGRAM = """
import sys
try:
    import ctypes
except ImportError:
    sys.exit("kit-cuda: this Python has no ctypes")
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    print("kit-cuda -1 0", error)
else:
    count, text = ctypes.c_int(0), ctypes.c_char_p()
    status = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    if status:
        cuda.cuGetErrorString(status, ctypes.byref(text))
    print("kit-cuda", status, count.value, (text.value or b"").decode())
"""
_ANSWER = re.compile(r"^kit-cuda (-?\d+) (\d+) ?(.*)$", re.MULTILINE)
_CANNOT_LOOK = ("executable file not found", "no such file or directory", "exec format error")


def refusal(said: str) -> tuple[str, str]:
    """Cause and remedy of a container that the daemon did not start."""
    text = said.lower()
    for pattern, cause, remedy in _REFUSALS:
        if re.search(pattern, text):
            return cause, remedy
    return "the daemon starts no container with a GPU", _MORE


def cannot_look(said: str, program: str) -> bool:
    """Whether the daemon only did not find, in the image, the program that was to look."""
    place = re.search(rf'exec:? "?(?:/\S*/)?{re.escape(program)}"?:', said)
    return place is not None and any(word in said[place.end() :] for word in _CANNOT_LOOK)


def cuda_answer(printed: str) -> tuple[int, int, str] | None:
    """CUresult, number of devices, CUDA's words, as CUDA_PROGRAM prints them; None: it did not."""
    match = _ANSWER.search(printed)
    return (int(match[1]), int(match[2]), match[3].strip()) if match else None


def of_cuda(status: int, devices: int) -> tuple[str, str]:
    """Cause and remedy of what CUDA said in the container; ("", "") where all is well."""
    if status == 0 and devices:
        return "", ""
    return _CUDA.get(
        status if status else 100,
        ("CUDA does not begin in a container", f"look the number up under CUresult; {_MORE}"),
    )


def of_cuda_on_host(status: int, devices: int) -> tuple[str, str]:
    """The same where no container is between."""
    if status == -1:
        return "the driver's library is not on this host, or not where programs look", _NEWER
    if status == 100 or (status == 0 and not devices):
        return "CUDA sees no GPU: CUDA_VISIBLE_DEVICES, or devices not handed to this pod", _REDO
    cause, remedy = of_cuda(status, devices)
    if status == 803:
        return "the driver's library is not of the driver that runs", _REBOOT
    return cause.replace(" in a container", ""), remedy


def of_smi(printed: str) -> tuple[str, str]:
    """Cause and remedy of an nvidia-smi that fails in a container."""
    text = printed.lower()
    if "version mismatch" in text:
        return _CUDA[803]
    if "unknown error" in text:
        cause = "the devices are taken away from containers (systemctl daemon-reload does that)"
        return cause, 'in /etc/docker/daemon.json: "exec-opts": ["native.cgroupdriver=cgroupfs"]'
    return "nvidia-smi fails in a container", f"make it work on the host first; {_MORE}"
