import { Buffer } from 'node:buffer'
import type { EmbeddingsRequest, EmbeddingVector } from '../../endpoints/embeddings/embeddings-request.ts'

const FLOAT32_BYTES = 4

/** How many vectors a request asks for. */
export function inputCount(input: EmbeddingsRequest['input']): number {
  // A bare list of numbers is one text, given as token ids.
  return Array.isArray(input) && typeof input[0] !== 'number' ? input.length : 1
}

/** A vector in the encoding a caller wants: numbers, or base64 of little-endian float32. */
export function encodeVector(vector: EmbeddingVector, encoding: 'float' | 'base64'): EmbeddingVector {
  if (encoding === 'base64') {
    if (typeof vector === 'string') return vector
    const bytes = Buffer.allocUnsafe(vector.length * FLOAT32_BYTES)
    vector.forEach((value, position) => {
      bytes.writeFloatLE(value, position * FLOAT32_BYTES)
    })
    return bytes.toString('base64')
  }
  if (typeof vector !== 'string') return vector
  const bytes = Buffer.from(vector, 'base64')
  return Array.from({ length: Math.floor(bytes.length / FLOAT32_BYTES) }, (_, position) =>
    bytes.readFloatLE(position * FLOAT32_BYTES),
  )
}
