import type { Buffer } from 'node:buffer'
import { type ByteSpan, CLOSE_BRACKET, COMMA, END, JsonCursor, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './json-cursor.ts'

/** A member of a JSON object. */
export interface JsonMember {
  /** Name as written between its quotes, with undecoded escapes. */
  readonly name: string
  /** Position of the opening quote of its name. */
  readonly start: number
  readonly valueStart: number
  /** Position after the last byte of its value. */
  readonly end: number
  /** Number of objects directly inside its list; undefined if its value is not a list. */
  readonly items: number | undefined
}

/** Returns the members of a JSON object without the content of their values, or undefined if the text is not one complete object. */
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
 * Returns the spans of an object's members with these names. Absent members and names with escapes are omitted. If a name is
 * repeated, the last one seen before all names were found counts. Stops after the last of them.
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

/** Returns the span of the last item of a list `bytes[start, end)`, or undefined for an empty list and for other values. */
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
 * Returns the span of a string including its quotes: the value of the first member of that name, or for a path, of the first
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

/** Shared by all synchronous searches for a string, because nearly every call needs one. */
const searching = new JsonCursor([])

/** Moves to the string at a path, and past it. */
function isAtString(cursor: JsonCursor, path: readonly string[]): boolean {
  for (let index = 0; index < path.length; index++) if (!cursor.seek(path[index]!)) return false
  return cursor.peek() === QUOTE && cursor.skipValue()
}
