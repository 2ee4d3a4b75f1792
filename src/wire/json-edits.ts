import { Buffer } from 'node:buffer'
import {
  type ByteSpan,
  CLOSE_BRACKET,
  COMMA,
  END,
  isText,
  JsonCursor,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './json-cursor.ts'

/** Replacements of spans in one run of bytes, collected in order and applied in a single copy. Reusable. */
export class ByteEdits {
  readonly #starts: number[] = []
  readonly #ends: number[] = []
  readonly #replacements: (Uint8Array | undefined)[] = []
  #count = 0
  #growth = 0

  /** Removes all replacements. */
  clear(): void {
    this.#count = 0
    this.#growth = 0
  }

  /** Replaces `[start, end)` with `replacement`, or removes it. Spans must come in order and not overlap. */
  replace(start: number, end: number, replacement: Uint8Array | undefined): void {
    this.#starts[this.#count] = start
    this.#ends[this.#count] = end
    this.#replacements[this.#count] = replacement
    this.#count += 1
    this.#growth += (replacement === undefined ? 0 : replacement.length) - (end - start)
  }

  /** Returns the first `length` bytes with all replacements applied, and clears the replacements. Without any, returns the input. */
  apply(bytes: Buffer, length: number = bytes.length): Buffer {
    if (this.#count === 0) return length === bytes.length ? bytes : bytes.subarray(0, length)
    const edited = Buffer.allocUnsafe(length + this.#growth)
    let read = 0
    let written = 0
    for (let edit = 0; edit < this.#count; edit++) {
      written += bytes.copy(edited, written, read, this.#starts[edit])
      const replacement = this.#replacements[edit]
      this.#replacements[edit] = undefined
      if (replacement !== undefined) {
        edited.set(replacement, written)
        written += replacement.length
      }
      read = this.#ends[edit] ?? 0
    }
    bytes.copy(edited, written, read, length)
    this.clear()
    return edited
  }

  /** Returns the edited JSON as chunks, without copying unchanged parts. */
  pieces(bytes: Buffer): Uint8Array[] {
    const pieces: Uint8Array[] = []
    let read = 0
    for (let edit = 0; edit < this.#count; edit++) {
      const replacement = this.#replacements[edit]
      pieces.push(bytes.subarray(read, this.#starts[edit]))
      if (replacement !== undefined) pieces.push(replacement)
      read = this.#ends[edit] ?? 0
    }
    pieces.push(bytes.subarray(read))
    return pieces
  }
}

/**
 * Returns the span of a string with a known value, or undefined if the first member at that path is not this string. Parsers
 * differ about which of two members of the same name counts.
 */
export function findKnownString(
  bytes: Buffer,
  path: readonly string[],
  value: unknown,
  start?: number,
  end?: number,
): ByteSpan | undefined {
  const span = findString(bytes, path, start, end)
  return span !== undefined && isWrittenAs(bytes, span, value) ? span : undefined
}

function isWrittenAs(bytes: Buffer, { start, end }: ByteSpan, value: unknown): boolean {
  if (typeof value === 'string' && isPlain(value)) return isText(bytes, start + 1, end - 1, value)
  return bytes.toString('utf8', start, end) === JSON.stringify(value)
}

const FIRST_PRINTABLE = 0x20
const LAST_PRINTABLE = 0x7e
const QUOTE_BYTE = 0x22
const BACKSLASH = 0x5c

/** Whether JSON writes a text unchanged, with one byte per character. */
function isPlain(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code < FIRST_PRINTABLE || code > LAST_PRINTABLE || code === QUOTE_BYTE || code === BACKSLASH) return false
  }
  return true
}

/** Returns a JSON object with the string of one member replaced, or undefined if its position is not certain. */
export function replaceString(bytes: Buffer, name: string, from: unknown, to: string): Buffer | undefined {
  const span = findKnownString(bytes, [name], from)
  return span === undefined || from === to ? span && bytes : spliceText(bytes, span, JSON.stringify(to))
}

/**
 * Returns the bytes with a text instead of a span. Copies everything and then moves the end: copying a part would first create a
 * view, and this function runs for nearly every call.
 */
export function spliceText(bytes: Buffer, { start, end }: ByteSpan, text: string): Buffer {
  const endsAt = start + Buffer.byteLength(text)
  const length = bytes.length + endsAt - end
  const spliced = Buffer.allocUnsafe(Math.max(length, bytes.length))
  spliced.set(bytes)
  spliced.copyWithin(endsAt, end, bytes.length)
  spliced.write(text, start)
  return length < bytes.length ? spliced.subarray(0, length) : spliced
}

/** New values of members, as written by `JSON.stringify`; undefined removes the member. */
export type MemberChanges = ReadonlyMap<string, string | undefined>

/**
 * Changes members in the text of a JSON object and keeps every other byte: values are replaced in place, new members come first.
 * Returns undefined unless each of them occurs at most once (names with escapes and repeated members count as uncertain), because
 * parsers differ about which of two members counts.
 */
export function editMembers(bytes: Buffer, changes: MemberChanges): ByteEdits | undefined {
  const members = outlineMembers([bytes])
  if (members === undefined || members.some((member) => member.name.includes('\\'))) return undefined
  const edits = new ByteEdits()
  const added = [...changes].filter(([name, value]) => value !== undefined && !members.some((one) => one.name === name))
  // The comma after the new members depends on whether other members remain.
  const left = members.filter((member) => !changes.has(member.name) || changes.get(member.name) !== undefined)
  if (added.length > 0) {
    const text = added.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')
    const behindBrace = bytes.indexOf(OPEN_BRACE) + 1
    edits.replace(behindBrace, behindBrace, Buffer.from(left.length > 0 ? `${text},` : text))
  }
  const seen = new Set<string>()
  for (const [index, member] of members.entries()) {
    if (!changes.has(member.name)) continue
    if (seen.has(member.name)) return undefined
    seen.add(member.name)
    const value = changes.get(member.name)
    if (value === undefined) removeMember(edits, members, index, left.at(-1))
    else edits.replace(member.valueStart, member.end, Buffer.from(value))
  }
  return edits
}

/** Removes a member with the comma after it, or with the comma before it if no other member follows. */
function removeMember(
  edits: ByteEdits,
  members: readonly JsonMember[],
  index: number,
  lastLeft: JsonMember | undefined,
): void {
  const member = members[index]!
  const previous = members[index - 1]
  const isBehindLast = lastLeft !== undefined && lastLeft.start < member.start
  if (isBehindLast && previous !== undefined) edits.replace(previous.end, member.end, undefined)
  else edits.replace(member.start, members[index + 1]?.start ?? member.end, undefined)
}

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
