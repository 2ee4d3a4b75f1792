/** The ways a fixture's bytes are cut into network reads; every stream fixture is fed in all of them. */
export const CUTS = ['whole', 'byte by byte', 'inside multi-byte characters', 'in blocks of 7 bytes'] as const

/** A way of cutting. */
export type Cut = (typeof CUTS)[number]

/** Cuts a fixture into the chunks that a network might deliver. */
export function cutBytes(bytes: Uint8Array, cut: Cut): Uint8Array[] {
  if (cut === 'whole') return [bytes]
  if (cut === 'byte by byte') return blocks(bytes, 1)
  if (cut === 'in blocks of 7 bytes') return blocks(bytes, 7)
  const chunks: Uint8Array[] = []
  let start = 0
  for (let position = 1; position < bytes.length; position++) {
    const isContinuation = ((bytes[position] ?? 0) & 0b1100_0000) === 0b1000_0000
    if (isContinuation) {
      chunks.push(bytes.subarray(start, position))
      start = position
    }
  }
  chunks.push(bytes.subarray(start))
  return chunks
}

function blocks(bytes: Uint8Array, size: number): Uint8Array[] {
  const chunks: Uint8Array[] = []
  for (let start = 0; start < bytes.length; start += size) chunks.push(bytes.subarray(start, start + size))
  return chunks
}
