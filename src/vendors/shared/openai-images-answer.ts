import { parseVendorJson } from '../../core/json.ts'
import type { RelayedBody } from '../vendor.ts'
import { type MemberOutline, memberText, outlineMembers } from './member-outline.ts'
import { openaiImageUsage } from './openai-images-usage.ts'

/**
 * Relays a whole image answer: its bytes pass untouched, and only `usage` is read. Pictures are counted as they stand in
 * `data`. Undefined when it is not a list of pictures: no JSON object, an error in disguise, or no `data`.
 */
export function relayPictures(chunks: readonly Uint8Array[]): RelayedBody | undefined {
  const members = outlineMembers(chunks)
  if (members === undefined) return undefined
  const images = memberCalled(members, 'data')?.items
  const error = memberCalled(members, 'error')
  if (images === undefined || (error !== undefined && memberText(chunks, error) !== 'null')) return undefined
  const usage = memberCalled(members, 'usage')
  const reported = usage === undefined ? undefined : parseVendorJson(memberText(chunks, usage))
  return { chunks, usage: { ...openaiImageUsage(reported), images } }
}

/** Of members with the same name, readers take the last. */
export function memberCalled(members: readonly MemberOutline[], name: string): MemberOutline | undefined {
  return members.findLast((member) => member.name === name)
}
