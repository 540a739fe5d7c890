# Read after the `project` command of llama.cpp: leaves out a library for its own programs, which is
# half of the compilation and which the Python package sets in a way that no option changes.
set(LLAMA_BUILD_COMMON OFF)
