/** Whether the id of a row is a pattern. */
export function isPattern(id: string): boolean {
  return id.includes('*')
}

/** Returns the text that the star of a pattern matches in a name, possibly empty; undefined if the name does not match. */
export function starOf(pattern: string, name: string): string | undefined {
  const at = pattern.indexOf('*')
  const [before, after] = [pattern.slice(0, at), pattern.slice(at + 1)]
  const isMatch = name.length >= before.length + after.length && name.startsWith(before) && name.endsWith(after)
  return isMatch ? name.slice(before.length, name.length - after.length) : undefined
}

/** Returns whether a vendor claims an id; see `Vendor.claims`. */
export function isClaimedBy(pattern: string, id: string): boolean {
  return starOf(pattern, id) !== undefined && !id.includes('/') && (pattern.includes(':') || !id.includes(':'))
}

/** Removes the date of a version: `-2025-08-07`, `-20250807`, or `@20250807`. */
export function withoutDate(id: string): string {
  return id.replace(
    /[-@]20\d\d(?:-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])|(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))$/,
    '',
  )
}

/** Returns the words of an id without numbers, dates and versions: `claude haiku` for `claude-haiku-4-5-20251001`. */
export function familyWords(id: string): string[] {
  return (
    withoutDate(id)
      .toLowerCase()
      .replace(/[\d.]+/g, '')
      .match(/[a-z]+/g) ?? []
  )
}

/** Returns the numbers of a version, such as `[4, 5]` for `claude-haiku-4-5-20251001`, without sizes such as `8b`. */
export function versionOf(id: string): number[] {
  return Array.from(withoutDate(id).matchAll(/(?<!\d)\d{1,3}(?!\d|b\b)/g), ([number]) => Number(number))
}

/** Orders ids by their versions, the newest first. */
export function newerFirst(one: string, other: string): number {
  const [left, right] = [versionOf(one), versionOf(other)]
  for (let index = 0; index < Math.max(left.length, right.length); index += 1) {
    const difference = (right[index] ?? -1) - (left[index] ?? -1)
    if (difference !== 0) return difference
  }
  return 0
}

const DOT_SEGMENT = /(?:^|\/)\.{1,2}(?:\/|$)/

/** Whether a name has `.` or `..` between slashes. Some vendors use the model id in the path, where these segments change the target. */
export function hasDotSegment(name: string): boolean {
  return DOT_SEGMENT.test(name)
}
