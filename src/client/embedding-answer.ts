import { brokenResponse, listed } from './client-error.ts'

/** Type of a vector: plain numbers, or 32-bit floats, which base64 encodes in a third of the bytes. */
export type VectorOf<Encoding> = Encoding extends 'base64' ? Float32Array : number[]

/** Answer of an embedding call, in the order of the inputs. */
export interface EmbeddingsAnswer<Vector = number[]> {
  readonly object: 'list'
  readonly model: string
  readonly data: readonly { readonly object: 'embedding'; readonly index: number; readonly embedding: Vector }[]
  readonly usage: { readonly prompt_tokens: number; readonly total_tokens: number }
}

/**
 * Decodes base64 vectors; others are returned unchanged.
 * @throws ClientError if base64 does not contain a whole number of floats, or the answer has no vectors.
 */
export function decodedVectors(
  answer: EmbeddingsAnswer<number[] | string>,
  requestId: string | undefined,
): EmbeddingsAnswer<number[] | Float32Array> {
  return {
    ...answer,
    data: listed(answer.data, requestId).map((row) => ({
      ...row,
      embedding: typeof row.embedding === 'string' ? decodeVector(row.embedding, requestId) : row.embedding,
    })),
  }
}

function bytesOf(base64: string, requestId: string | undefined): Uint8Array {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  } catch (cause) {
    throw brokenResponse('The answer holds a vector that is not base64.', { requestId }, cause)
  }
}

/** Decodes base64 of little-endian 32-bit floats, whatever the byte order of this machine. */
function decodeVector(base64: string, requestId: string | undefined): Float32Array {
  const bytes = bytesOf(base64, requestId)
  if (bytes.byteLength % 4 !== 0) throw brokenResponse('The answer holds a vector that is cut off.', { requestId })
  const view = new DataView(bytes.buffer)
  return Float32Array.from({ length: bytes.byteLength / 4 }, (_, index) => view.getFloat32(index * 4, true))
}
