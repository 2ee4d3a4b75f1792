/** Does the id of a row stand for many ids? */
export function isPattern(id: string): boolean {
  return id.includes('*')
}

/** What the star of a pattern stands for in a name, which may be nothing; undefined when the name does not match. */
export function starOf(pattern: string, name: string): string | undefined {
  const at = pattern.indexOf('*')
  const [before, after] = [pattern.slice(0, at), pattern.slice(at + 1)]
  const isMatch = name.length >= before.length + after.length && name.startsWith(before) && name.endsWith(after)
  return isMatch ? name.slice(before.length, name.length - after.length) : undefined
}

const DOT_SEGMENT = /(?:^|\/)\.{1,2}(?:\/|$)/

/** Has a name `.` or `..` between slashes? Some vendors have the id of a model in the path, where these lead elsewhere. */
export function hasDotSegment(name: string): boolean {
  return DOT_SEGMENT.test(name)
}
