/** Entry that receives its share of calls by weight. */
export interface Weighted {
  /** Positive weight. */
  readonly weight: number
  /** Accumulated credit of the entry; changed only here. */
  credit: number
}

/**
 * Picks by smooth weighted round-robin: each entry gets its weight as credit, and the entry with the most credit is picked
 * and pays the total. It is deterministic, so shares are exact within one pick, and the picks of an entry are spread
 * evenly.
 */
export function pickSmoothly<Entry extends Weighted>(entries: readonly [Entry, ...Entry[]]): Entry {
  let picked: Entry = entries[0]
  if (entries.length === 1) return picked
  let total = 0
  for (const entry of entries) {
    entry.credit += entry.weight
    total += entry.weight
    if (entry.credit > picked.credit) picked = entry
  }
  picked.credit -= total
  return picked
}
