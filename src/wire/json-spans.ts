import type { Buffer } from 'node:buffer'
import { type ByteSpan, CLOSE_BRACKET, COMMA, END, JsonCursor, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './json-cursor.ts'

/** A member of a JSON object. */
export interface JsonMember {
  /** As written between its quotes, escapes unread. */
  readonly name: string
  /** Its opening quote. */
  readonly start: number
  readonly valueStart: number
  /** Position after the last byte of its value. */
  readonly end: number
  /** Objects directly inside its list; undefined if its value is not a list. */
  readonly items: number | undefined
}

/** The members of a JSON object, without the content of their values. Undefined if the text is not one complete object. */
export function outlineMembers(chunks: readonly Uint8Array[]): JsonMember[] | undefined {
  const cursor = new JsonCursor(chunks)
  const members: JsonMember[] = []
  if (!cursor.enter(OPEN_BRACE)) return undefined
  while (cursor.nextMember()) {
    const { name, memberStart: start, valueStart } = cursor
    if (!cursor.skipValue()) return undefined
    members.push({ name, start, valueStart, end: cursor.position, items: cursor.items })
  }
  return cursor.isBroken || cursor.peek() !== END ? undefined : members
}

/**
 * Spans of the values of an object's members with these names. Members that are absent, or whose name has escapes, are left
 * out. For a repeated name, the last one seen before all names were found counts. Stops after the last of them.
 */
export function findMembers<Name extends string>(
  bytes: Buffer,
  names: readonly Name[],
): Partial<Record<Name, ByteSpan>> {
  const cursor = new JsonCursor([bytes])
  const spans: Partial<Record<Name, ByteSpan>> = {}
  let missing = names.length
  if (!cursor.enter(OPEN_BRACE)) return spans
  while (missing > 0 && cursor.nextMember()) {
    const found = names.find((name) => cursor.isNamed(name))
    const start = cursor.valueStart
    if (!cursor.skipValue()) break
    if (found === undefined) continue
    spans[found] = { start, end: cursor.position }
    missing -= 1
  }
  return spans
}

/** Span of the last item of a list, `bytes[start, end)`; undefined for an empty list, and for another value. */
export function lastItem(bytes: Buffer, { start, end }: ByteSpan): ByteSpan | undefined {
  const cursor = new JsonCursor([bytes.subarray(start, end)])
  let last: ByteSpan | undefined
  if (!cursor.enter(OPEN_BRACKET)) return undefined
  for (let byte = cursor.peek(); byte !== CLOSE_BRACKET; byte = cursor.peek()) {
    if (byte === COMMA) cursor.enter(COMMA)
    if (cursor.peek() === END) return undefined
    const itemStart = start + cursor.position
    if (!cursor.skipValue()) return undefined
    last = { start: itemStart, end: start + cursor.position }
  }
  return last
}

/**
 * Span of a string, quotes included: the value of the first member of that name; for a path of several names, of the first
 * member at each level. Undefined if there is none, if it is not a string, or if a name has escapes.
 */
export function findString(
  bytes: Buffer,
  path: readonly string[],
  start = 0,
  end: number = bytes.length,
): ByteSpan | undefined {
  searching.restart(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end))
  const span = isAtString(searching, path)
    ? { start: start + searching.valueStart, end: start + searching.position }
    : undefined
  searching.restart()
  return span
}

/** Serves all searches for a string, which are made for nearly every call and end where they begin. */
const searching = new JsonCursor([])

/** Goes to the string at a path, and behind it. */
function isAtString(cursor: JsonCursor, path: readonly string[]): boolean {
  for (let index = 0; index < path.length; index++) if (!cursor.seek(path[index]!)) return false
  return cursor.peek() === QUOTE && cursor.skipValue()
}
