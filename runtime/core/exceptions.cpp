#include "runtime/core/exceptions.h"

#include <new>
#include <string_view>
#include <system_error>

namespace shardc {

/// Returns the message without the source place and the backtrace that c10::Error appends.
static auto WithoutBacktrace(std::string_view what) -> std::string_view {
  for (const std::string_view mark : {"\nException raised from", " (Exception raised from"}) {
    what = what.substr(0, what.find(mark));
  }
  return what.substr(0, what.find_last_not_of(" \n") + 1);
}

auto ErrorOfException() -> Error {
  try {
    throw;
  } catch (const ErrorThrown& thrown) {
    return thrown.error();
  } catch (const std::bad_alloc&) {
    return Fail(ExitCode::DoesNotFit, "out of memory: an allocation beside the arenas failed");
  } catch (const std::system_error& error) {
    return Fail(ExitCode::Environment, "the system refused: {}", error.what());
  } catch (const std::exception& error) {
    return Fail(ExitCode::InternalFault, "unexpected: {}", WithoutBacktrace(error.what()));
  } catch (...) {
    return Fail(ExitCode::InternalFault, "unexpected: an exception of unknown type");
  }
}

}  // namespace shardc
