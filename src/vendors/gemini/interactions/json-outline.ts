import type { Buffer } from 'node:buffer'
import { parseVendorJson } from '../../../core/json.ts'
import { closingQuote } from '../../shared/json-bytes.ts'

const QUOTE = 0x22

// Longer strings are pictures or signatures. Ids, types and error texts are shorter.
const LONGEST_KEPT_BYTES = 16_384

/**
 * Parses JSON with every long string in it made empty, so that megabytes of base64 are neither decoded nor
 * copied. Undefined when the text is not JSON. Linear: long strings are passed over by a native search.
 */
export function jsonOutline(bytes: Buffer, start = 0, end: number = bytes.length): unknown {
  let text = ''
  let copied = start
  let open = bytes.indexOf(QUOTE, start)
  while (open !== -1 && open < end) {
    const close = closingQuote(bytes, open, end)
    if (close === -1) return undefined
    if (close - open > LONGEST_KEPT_BYTES) {
      text += bytes.toString('utf8', copied, open + 1)
      copied = close
    }
    open = bytes.indexOf(QUOTE, close + 1)
  }
  return parseVendorJson(text + bytes.toString('utf8', copied, end))
}
