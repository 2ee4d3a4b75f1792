import type { Base64Bytes } from './base64-bytes.ts'

const WINDOW_BYTES = 64 * 1024
const LINEARIZED_BYTES = 1024

/**
 * Returns the number of pages of a PDF file (ISO 32000-1), from its linearization dictionary or the root of its page tree. Reads the
 * first and the last 64 KiB. Undefined if neither is there in plain text, because newer files compress the tree. Never throws.
 */
export function pdfPages(bytes: Base64Bytes): number | undefined {
  const start = bytes.read(0, WINDOW_BYTES).toString('latin1')
  if (!start.slice(0, LINEARIZED_BYTES).includes('%PDF-')) return undefined
  const head = start.slice(0, LINEARIZED_BYTES)
  if (head.includes('/Linearized')) {
    const stated = positive(/\/N\s+(\d{1,9})\b/.exec(head)?.[1])
    if (stated !== undefined) return stated
  }
  const end = bytes.read(Math.max(0, bytes.byteLength - WINDOW_BYTES), WINDOW_BYTES).toString('latin1')
  let most: number | undefined
  for (const text of bytes.byteLength > WINDOW_BYTES ? [start, end] : [start]) {
    // Nodes below the root count only their own pages, so the highest count belongs to the root.
    for (const [, count] of text.matchAll(/\/Count\s+(\d{1,9})\b/g)) most = Math.max(most ?? 0, positive(count) ?? 0)
  }
  return most === 0 ? undefined : most
}

function positive(digits: string | undefined): number | undefined {
  const value = Number(digits ?? 0)
  return value > 0 ? value : undefined
}
