import { brokenAnswer, foreignType } from './client-error.ts'
import type { OpenAnswer } from './connection.ts'

/** An answer in bytes. Read it once: as a whole, chunk by chunk, or by its stream. */
export interface BinaryAnswer extends AsyncIterable<Uint8Array> {
  /** `audio/mpeg`, `audio/wav`, `video/mp4`. */
  readonly contentType: string
  /** The gateway's id of the request. */
  readonly requestId: string | undefined
  /** The bytes as they arrive. It errors when the answer breaks off. */
  readonly stream: ReadableStream<Uint8Array>
  /**
   * All bytes.
   * @throws ClientError when the answer breaks off.
   */
  bytes(): Promise<Uint8Array>
  /** Ends the call, at the vendor too. */
  abort(): void
}

/**
 * Reads an answer in bytes.
 * @throws ClientError for text: a page of something that stands in front of the gateway.
 */
export function binaryAnswer(answer: OpenAnswer): BinaryAnswer {
  const { response, requestId, scope, callerSignal } = answer
  const contentType = response.headers.get('content-type') ?? 'application/octet-stream'
  if (contentType.startsWith('text/')) {
    scope.cancel()
    throw brokenAnswer(`The answer holds no bytes.${foreignType(response, 'octet-stream')}`, answer)
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
      throw brokenAnswer('The answer broke off.', answer, cause)
    }
  }
  /** Nobody waits for it: some sources never say that they are done. What has failed cannot be left, and was told. */
  const cancel = (): void => {
    scope.end()
    reader?.cancel().catch(() => undefined)
  }
  let isRead = false
  /** Whoever came second would find nothing, and take it for an empty file. */
  const begin = (): void => {
    if (isRead) throw new TypeError('An answer in bytes is read once.')
    isRead = true
  }
  let isStreamed = false
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (!isStreamed) begin()
        isStreamed = true
        const chunk = await next()
        if (chunk === undefined) controller.close()
        else controller.enqueue(chunk)
      },
      cancel,
    },
    { highWaterMark: 0 },
  )
  async function* chunks(): AsyncGenerator<Uint8Array> {
    begin()
    try {
      for (let chunk = await next(); chunk !== undefined; chunk = await next()) yield chunk
    } finally {
      cancel()
    }
  }
  return {
    contentType,
    requestId,
    stream,
    async bytes() {
      const parts: Uint8Array[] = []
      for await (const chunk of chunks()) parts.push(chunk)
      const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0))
      let position = 0
      for (const part of parts) {
        whole.set(part, position)
        position += part.byteLength
      }
      return whole
    },
    [Symbol.asyncIterator]: chunks,
    abort: cancel,
  }
}
