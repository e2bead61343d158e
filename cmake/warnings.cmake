# Linked privately by every target of ours, never exported.
add_library(tutti_warnings INTERFACE)
target_compile_options(tutti_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast
  -Wcast-align -Wformat=2 -Wimplicit-fallthrough -Wno-missing-field-initializers
  -Wno-restrict)  # GCC 12 warns of its own string concatenation
if(TUTTI_WERROR)
  target_compile_options(tutti_warnings INTERFACE -Werror)
endif()
# Contraction would let the compiler round a*b+c once in one loop and twice in its twin: the same sum, other bits.
target_compile_options(tutti_warnings INTERFACE -ffp-contract=off)
