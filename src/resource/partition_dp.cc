// The optimum by dynamic programming over subsets of the free GPUs, which are bit masks here.
//
// One table holds, for every subset that can remain once groups have been taken out, the best sum
// of scores into which it splits; a subset of the size of a group or of the left-over group is one
// group, and its entry the group's own score. Masks grow as groups are added, so ascending order
// finds every smaller entry ready. 16 GPUs: 256 KiB, freed on return, and at most 2 million steps.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/result.h"
#include "resource/partition.h"

namespace ndp::resource {
namespace {

using Mask = std::uint32_t;

// std::popcount is a call without hardware support in the target, which the innermost loop feels.
constexpr auto kBits = [] {
  std::array<std::uint8_t, 256> bits{};
  for (unsigned i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<std::uint8_t>(std::popcount(i));
  }
  return bits;
}();

int Count(Mask mask) { return kBits[mask & 0xFF] + kBits[mask >> 8]; }

// Calls f for every subset of `within` that has `size` members.
template <typename F>
void ForEachSubset(Mask within, int size, F f) {
  if (size == 0) return f(Mask{0});
  std::array<Mask, kExactLimit + 1> lowest{};  // the k lowest members of `within`
  int members = 0;
  for (Mask rest = within; rest != 0; rest &= rest - 1) {
    const auto next = static_cast<std::size_t>(members) + 1;
    lowest[next] = lowest[next - 1] | (rest & (~rest + 1));
    ++members;
  }
  if (size > members) return;
  if (size == members) return f(within);
  // All but the lowest member of a subset are walked through; below them, every member can be the
  // lowest: these steps do not wait for one another, which is most of the speed.
  const Mask above = within & ~lowest[1];
  Mask upper = lowest[static_cast<std::size_t>(size)] & above;
  while (true) {
    const Mask top = upper == 0 ? ~Mask{0} : (upper & (~upper + 1)) - 1;
    for (Mask rest = within & top; rest != 0; rest &= rest - 1) f(upper | (rest & (~rest + 1)));
    if (upper == 0) return;
    // The next subset of the same size: the lowest run of members moves its top one place up, the
    // rest fall to the bottom. Places outside are filled with ones, so that the carry passes them.
    const Mask moved = ((upper | ~above) + (upper & (~upper + 1))) & above;
    if (moved <= upper) return;
    const auto fallen = static_cast<std::size_t>(Count(upper & ~moved));
    upper = moved | (lowest[fallen] & above);
  }
}

// The same subsets; walks through what they leave out where that is less.
template <typename F>
void ForEachSplit(Mask within, int size, F f) {
  const int rest = Count(within) - size;
  if (rest >= size) return ForEachSubset(within, size, f);
  if (rest >= 0) ForEachSubset(within, rest, [&](Mask out) { f(within & ~out); });
}

class SplitTable {
 public:
  SplitTable(const PairScores& free, Mask required, int size)
      : count_(free.gpus()), size_(size), left_over_(count_ % size), required_(required) {
    NDP_CHECK(count_ <= kExactLimit && size > 1 && size < count_);
    FillGroupScores(free);
    FillSplits();
  }

  std::vector<int> BestGroup() const {
    const Mask all = (Mask{1} << count_) - 1;
    Mask best = 0;
    std::int32_t best_total = std::numeric_limits<std::int32_t>::min();
    ForEachSplit(all & ~required_, size_ - Count(required_), [&](Mask added) {
      const Mask group = added | required_;
      const std::int32_t total = best_[group] + best_[all & ~group];
      if (total < best_total) return;
      if (total == best_total) {
        if (best_[group] < best_[best]) return;
        if (best_[group] == best_[best] && !HasLowerNumbers(group, best)) return;
      }
      best_total = total;
      best = group;
    });
    std::vector<int> gpus;
    for (Mask rest = best; rest != 0; rest &= rest - 1) gpus.push_back(std::countr_zero(rest));
    return gpus;
  }

 private:
  static bool HasLowerNumbers(Mask a, Mask b) {
    const Mask different = a ^ b;
    return (a & different & (~different + 1)) != 0;
  }

  void FillGroupScores(const PairScores& free) {
    best_.assign(std::size_t{1} << count_, 0);
    for (Mask set = 3; set < best_.size(); ++set) {
      const int low = std::countr_zero(set);
      const int high = static_cast<int>(std::bit_width(set)) - 1;
      if (low == high) continue;
      const Mask no_low = set & (set - 1);
      const Mask no_high = set & ~(Mask{1} << high);
      best_[set] = best_[no_low] + best_[no_high] - best_[no_low & no_high] + free.Score(low, high);
    }
  }

  // A subset of k·size members splits into k groups, one of k·size + left_over members into k
  // groups and the left-over group. The lowest member decides: it is in a full group or left over.
  // Only subsets that can remain are looked at: the first group takes all that is required, and
  // what remains behind a left-over group has lost its lowest member to it.
  void FillSplits() {
    for (Mask set = 0; set < best_.size(); ++set) {
      const int members = Count(set);
      if (members <= size_ || members > count_ - size_) continue;
      const int rest = members % size_;
      if (rest != 0 && rest != left_over_) continue;
      if ((set & required_) != 0) continue;
      if (rest == 0 && left_over_ != 0 && (set & 1) != 0) continue;
      const Mask lowest = set & (~set + 1);
      std::int32_t best = std::numeric_limits<std::int32_t>::min();
      const auto try_group = [&](Mask others) {
        const Mask group = others | lowest;
        best = std::max(best, best_[group] + best_[set & ~group]);
      };
      ForEachSplit(set & ~lowest, size_ - 1, try_group);
      if (rest != 0) ForEachSplit(set & ~lowest, left_over_ - 1, try_group);
      best_[set] = best;
    }
  }

  int count_;
  int size_;
  int left_over_;
  Mask required_;
  std::vector<std::int32_t> best_;
};

}  // namespace

std::vector<int> BestGroupExact(const PairScores& free, std::span<const int> required, int size) {
  Mask mask = 0;
  for (const int gpu : required) mask |= Mask{1} << gpu;
  return SplitTable(free, mask, size).BestGroup();
}

}  // namespace ndp::resource
