import { brokenResponse, foreignType, listed } from './client-error.ts'
import type { OpenResponse } from './connection.ts'

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

/** Binary answer. Read it once: as a whole, chunk by chunk, or by its stream. */
export interface BinaryAnswer extends AsyncIterable<Uint8Array> {
  /** Media type: `audio/mpeg`, `audio/wav`, `video/mp4`. */
  readonly contentType: string
  /** Request id of the gateway. */
  readonly requestId: string | undefined
  /** Stream of the bytes as they arrive. It errors if the answer breaks off or is aborted. */
  readonly stream: ReadableStream<Uint8Array>
  /**
   * Returns all bytes.
   * @throws ClientError if the answer breaks off; an `AbortError` if it is aborted.
   */
  bytes(): Promise<Uint8Array>
  /** Ends the call, at the vendor too. A loop then ends without an error. */
  abort(): void
}

/**
 * Reads a binary answer.
 * @throws ClientError if the answer is text: an intermediary in front of the gateway sent a page.
 */
export function binaryAnswer(answer: OpenResponse): BinaryAnswer {
  const { response, requestId, scope, callerSignal } = answer
  const contentType = response.headers.get('content-type') ?? 'application/octet-stream'
  if (contentType.startsWith('text/')) {
    scope.cancel()
    throw brokenResponse(`The answer holds no bytes.${foreignType(response, 'octet-stream')}`, answer)
  }
  scope.stopTimer()
  const reader = response.body?.getReader()
  const next = async (): Promise<Uint8Array | undefined> => {
    try {
      const result = reader === undefined ? undefined : await scope.within(reader.read())
      if (result?.value === undefined) scope.end()
      return result?.value
    } catch (cause) {
      scope.end()
      if (callerSignal?.aborted === true) throw callerSignal.reason
      throw brokenResponse('The answer broke off.', answer, cause)
    }
  }
  /** The cancellation is not awaited, because some sources never settle it; a failed source was reported before. */
  const release = (): void => {
    scope.end()
    reader?.cancel().catch(() => undefined)
  }
  let isAborted = false
  const assertWhole = (): void => {
    if (isAborted) throw new DOMException('The answer was aborted.', 'AbortError')
  }
  let isRead = false
  async function* chunks(): AsyncGenerator<Uint8Array> {
    // A second reader would get no bytes, as if the file were empty.
    if (isRead) throw new TypeError('An answer in bytes is read once.')
    isRead = true
    try {
      for (let chunk = await next(); chunk !== undefined; chunk = await next()) yield chunk
    } finally {
      release()
    }
  }
  const source = chunks()
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value } = await source.next()
        assertWhole()
        if (value === undefined) controller.close()
        else controller.enqueue(value)
      },
      cancel: release,
    },
    { highWaterMark: 0 },
  )
  return {
    contentType,
    requestId,
    stream,
    async bytes() {
      const parts: Uint8Array[] = []
      for await (const chunk of chunks()) parts.push(chunk)
      assertWhole()
      const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0))
      let position = 0
      for (const part of parts) {
        whole.set(part, position)
        position += part.byteLength
      }
      return whole
    },
    [Symbol.asyncIterator]: chunks,
    abort() {
      isAborted = true
      release()
    },
  }
}
