import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../../core/json.ts'
import { findTopLevelString } from '../../shared/json-bytes.ts'

const OPEN_BRACE = 0x7b

/** Top-level members and what they shall be. */
export type WantedMembers = ReadonlyMap<string, unknown>

/**
 * The bytes of a JSON object with some top-level members set, in pieces: what stands between them is not copied. A member
 * that is missing is added at the front. The object is parsed and written anew only where a member cannot be found in the
 * bytes: written with escapes, given twice, or with a value that is no string.
 * @param outline The parsed object; long strings in it may be missing.
 */
export function setMembers(bytes: Buffer, outline: Record<string, unknown>, wanted: WantedMembers): Uint8Array[] {
  const edits: { start: number; end: number; text: string }[] = []
  let added = ''
  for (const [name, value] of wanted) {
    const json = JSON.stringify(value)
    if (outline[name] === undefined) {
      added += `${JSON.stringify(name)}:${json},`
      continue
    }
    const span = findTopLevelString(bytes, name)
    if (span === undefined || parseVendorJson(bytes.toString('utf8', span.start, span.end)) !== outline[name]) {
      return [rewritten(bytes, wanted)]
    }
    edits.push({ ...span, text: json })
  }
  const front = bytes.indexOf(OPEN_BRACE) + 1
  if (added !== '') edits.push({ start: front, end: front, text: added })
  edits.sort((first, second) => first.start - second.start)
  const pieces: Uint8Array[] = []
  let copied = 0
  for (const { start, end, text } of edits) {
    pieces.push(bytes.subarray(copied, start), Buffer.from(text))
    copied = end
  }
  return [...pieces, bytes.subarray(copied)]
}

function rewritten(bytes: Buffer, wanted: WantedMembers): Buffer {
  const parsed = parseVendorJson(bytes.toString('utf8'))
  return Buffer.from(JSON.stringify({ ...(isJsonObject(parsed) ? parsed : {}), ...Object.fromEntries(wanted) }))
}
