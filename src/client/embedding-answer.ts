import { brokenResponse, listed } from './client-error.ts'

/** Type of a vector: plain numbers, or the 32-bit floats that base64 encodes in a third of the bytes. */
export type VectorOf<Encoding> = Encoding extends 'base64' ? Float32Array : number[]

/** The answer of an embedding call, in the order of the inputs. */
export interface EmbeddingsAnswer<Vector = number[]> {
  readonly object: 'list'
  readonly model: string
  readonly data: readonly { readonly object: 'embedding'; readonly index: number; readonly embedding: Vector }[]
  readonly usage: { readonly prompt_tokens: number; readonly total_tokens: number }
}

/**
 * Decodes base64 vectors; others are returned unchanged.
 * @throws ClientError for base64 without a whole number of floats, and for an answer without vectors.
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
    throw brokenResponse('The answer holds a vector that is no base64.', { requestId }, cause)
  }
}

/** Base64 of little-endian 32-bit floats, whatever the byte order of this machine. */
function decodeVector(base64: string, requestId: string | undefined): Float32Array {
  const bytes = bytesOf(base64, requestId)
  if (bytes.byteLength % 4 !== 0) throw brokenResponse('The answer holds a vector that is cut off.', { requestId })
  const view = new DataView(bytes.buffer)
  return Float32Array.from({ length: bytes.byteLength / 4 }, (_, index) => view.getFloat32(index * 4, true))
}
