import { brokenResponse, foreignType } from './client-error.ts'
import type { OpenResponse } from './connection.ts'

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
