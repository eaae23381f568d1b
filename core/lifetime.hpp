#pragma once

/// Marks a parameter of which the result is a view: a compiler that knows it warns where the
/// argument ends before the variable that is initialised with the result (Clang, `-Wdangling`).
/// Assignments are not checked.
#if defined(__clang__)
#define RW_LIFETIMEBOUND [[clang::lifetimebound]]
#else
#define RW_LIFETIMEBOUND
#endif
