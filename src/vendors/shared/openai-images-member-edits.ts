import { Buffer } from 'node:buffer'
import { ByteEdits } from './byte-edits.ts'
import { asBuffer } from './json-bytes.ts'
import { type MemberOutline, outlineMembers } from './member-outline.ts'

/** New values of top-level members, as they were written by `JSON.stringify`; undefined: the member goes. */
export type MemberChanges = ReadonlyMap<string, string | undefined>

/**
 * Changes top-level members in the text of a JSON object and leaves every other byte as it is: values are replaced in
 * place, new members stand first. Undefined when the text cannot be shown to hold each of them at most once (names with
 * escapes, members that stand twice): which of two counts is the reader's choice.
 */
export function editMembers(bytes: Uint8Array, changes: MemberChanges): Buffer | undefined {
  const members = outlineMembers([bytes])
  if (members === undefined || members.some((member) => member.name.includes('\\'))) return undefined
  const buffer = asBuffer(bytes)
  const edits = new ByteEdits()
  const added = [...changes].filter(([name, value]) => value !== undefined && !members.some((one) => one.name === name))
  // Whether members are left behind the new ones decides about the comma between them.
  const left = members.filter((member) => !changes.has(member.name) || changes.get(member.name) !== undefined)
  if (added.length > 0) {
    const text = added.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')
    const behindBrace = buffer.indexOf('{') + 1
    edits.replace(behindBrace, behindBrace, Buffer.from(left.length > 0 ? `${text},` : text))
  }
  const seen = new Set<string>()
  for (const [index, member] of members.entries()) {
    if (!changes.has(member.name)) continue
    if (seen.has(member.name)) return undefined
    seen.add(member.name)
    const value = changes.get(member.name)
    if (value === undefined) removeMember(edits, members, index, left)
    else edits.replace(member.valueStart, member.end, Buffer.from(value))
  }
  return edits.apply(buffer, buffer.length)
}

/** Takes a member out with the comma behind it, or with the one before it when no member that stays follows. */
function removeMember(
  edits: ByteEdits,
  members: readonly MemberOutline[],
  index: number,
  left: readonly MemberOutline[],
): void {
  const member = members[index]
  const next = members[index + 1]
  const lastLeft = left.at(-1)
  if (member === undefined) return
  const isBehindLast = lastLeft !== undefined && lastLeft.start < member.start
  const previous = members[index - 1]
  if (isBehindLast && previous !== undefined) edits.replace(previous.end, member.end, undefined)
  else edits.replace(member.start, next?.start ?? member.end, undefined)
}
