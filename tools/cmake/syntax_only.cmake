# SHARDC_SYNTAX_ONLY: the compiler looks at each file of compiler/ and runtime/ by itself, without precompiled headers, and makes
# no code: what a file forgot to include is reported. Objects, libraries and programs are empty files that say when.

set(SHARDC_TESTS OFF)
set(CMAKE_UNITY_BUILD OFF)
set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
# ccache keeps no result of -fsyntax-only.
set(CMAKE_CXX_COMPILER_LAUNCHER "")
set(touch "${CMAKE_COMMAND} -E touch")
set(CMAKE_CXX_COMPILE_OBJECT "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -fsyntax-only -c <SOURCE> && ${touch} <OBJECT>")
set(CMAKE_CXX_ARCHIVE_CREATE "${touch} <TARGET>")
set(CMAKE_CXX_ARCHIVE_APPEND "${touch} <TARGET>")
set(CMAKE_CXX_ARCHIVE_FINISH "")
set(CMAKE_CXX_LINK_EXECUTABLE "${touch} <TARGET>")
