// Chooses one of two types at compile time, without standard headers: those are absent in a plain device compile.
#pragma once

namespace wavesmith::arch {

template <bool condition, class Yes, class No> struct SelectType {
    using Type = Yes;
};
template <class Yes, class No> struct SelectType<false, Yes, No> {
    using Type = No;
};

template <bool condition, class Yes, class No> using Select = typename SelectType<condition, Yes, No>::Type;

}  // namespace wavesmith::arch
