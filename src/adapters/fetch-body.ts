import type { BodyFailure, BodyListener } from '../core/exchange.ts'

/**
 * Reads the body of a web request, at most `limitBytes`; nothing when the announced length is already too large.
 * A refused body is not cancelled: servers cut the connection then, and the refusal would not arrive.
 */
export function readFetchBody(request: Request, limitBytes: number, listener: BodyListener): void {
  if (request.bodyUsed) {
    listener('consumed', [])
    return
  }
  if (Number(request.headers.get('content-length')) > limitBytes) {
    listener('too_large', [])
    return
  }
  const body = request.body
  if (body === null) listener(undefined, [])
  else if (body.locked) listener('consumed', [])
  else if (request.signal.aborted) listener('aborted', [])
  else readAll(body.getReader(), request.signal, limitBytes, listener)
}

function readAll(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal: AbortSignal,
  limitBytes: number,
  listener: BodyListener,
): void {
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  let settled = false
  const settle = (failure: BodyFailure | undefined): void => {
    if (settled) return
    settled = true
    signal.removeEventListener('abort', abort)
    listener(failure, failure === undefined ? chunks : [])
  }
  const abort = (): void => settle('aborted')
  const take = (result: ReadableStreamReadResult<Uint8Array>): void => {
    if (settled) return
    if (result.done) {
      settle(undefined)
      return
    }
    sizeBytes += result.value.byteLength
    if (sizeBytes > limitBytes) {
      reader.releaseLock()
      settle('too_large')
      return
    }
    chunks.push(result.value)
    reader.read().then(take, abort)
  }
  // A body made in this process does not fail by itself when its request is aborted.
  signal.addEventListener('abort', abort)
  reader.read().then(take, abort)
}
