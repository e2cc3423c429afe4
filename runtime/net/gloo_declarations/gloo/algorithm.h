// Stands in for Gloo's header, of which c10d's headers use nothing. See docs/decisions/0007.
#pragma once
