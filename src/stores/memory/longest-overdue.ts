/**
 * Of entries whose time has come those that wait longest, in that order, at most `limit`. One pass, whatever the order of
 * the entries, and never more than twice `limit` of them are sorted at once.
 *
 * @param timeOf Unix milliseconds at which the time of an entry comes; undefined passes over it.
 */
export function longestOverdue<Entry>(
  entries: Iterable<Entry>,
  timeOf: (entry: Entry) => number | undefined,
  nowMs: number,
  limit: number,
): Entry[] {
  if (limit <= 0) return []
  let waiting: { readonly entry: Entry; readonly timeMs: number }[] = []
  let latestMs = nowMs
  const keepLongest = (): void => {
    waiting.sort((one, other) => one.timeMs - other.timeMs)
    waiting = waiting.slice(0, limit)
  }
  for (const entry of entries) {
    const timeMs = timeOf(entry)
    if (timeMs === undefined || timeMs > latestMs) continue
    waiting.push({ entry, timeMs })
    if (waiting.length < limit * 2) continue
    keepLongest()
    latestMs = waiting.at(-1)!.timeMs
  }
  keepLongest()
  return waiting.map(({ entry }) => entry)
}
