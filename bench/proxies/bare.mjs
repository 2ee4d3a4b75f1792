import { createServer } from 'node:http'

export const name = 'bare'
export const title = 'bare Node proxy'
/** Whether the proxy translates. Without translation, scenarios send it the vendor's own dialect. */
export const isTranslating = false

/**
 * The floor: Node's HTTP server and undici's dispatch, which read and change nothing.
 * @param duties what a proxy does beyond that: `onRequest(headers, body)`, `onAnswer(chunk)` and the `headers` that it adds
 */
export async function serve({ upstreamPort }, duties = NO_DUTIES) {
  const { Pool } = await import('undici')
  const pool = new Pool(`http://127.0.0.1:${upstreamPort}`, { connections: null, pipelining: 1 })
  const server = createServer((request, response) => {
    const parts = []
    request.on('data', (part) => parts.push(part))
    request.on('end', () => {
      const { headers } = request
      const body = parts.length === 1 ? parts[0] : Buffer.concat(parts)
      duties.onRequest(headers, body)
      pool.dispatch(
        {
          path: request.url,
          method: request.method,
          headers: ['content-type', headers['content-type'], 'authorization', headers.authorization],
          body,
        },
        new Relay(response, duties),
      )
    })
  })
  return { server }
}

const NO_DUTIES = { onRequest() {}, onAnswer() {}, headers: [] }

class Relay {
  #response
  #duties
  #controller
  #isEnded = false

  constructor(response, duties) {
    this.#response = response
    this.#duties = duties
    response.on('close', () => {
      // Also wakes a paused relay, because a closed response never emits `drain`.
      if (!this.#isEnded) this.#controller?.abort(new Error('the caller has disconnected'))
    })
  }

  onRequestStart(controller) {
    this.#controller = controller
    // The caller may have disconnected while the request waited for a connection, which the pool would lose.
    if (this.#response.destroyed) controller.abort(new Error('the caller has disconnected'))
  }

  onResponseStart(_controller, status, headers) {
    const head = ['content-type', headers['content-type'], ...this.#duties.headers]
    const length = headers['content-length']
    if (length !== undefined) head.push('content-length', length)
    this.#response.writeHead(status, head)
  }

  onResponseData(controller, chunk) {
    this.#duties.onAnswer(chunk)
    if (this.#response.write(chunk)) return
    controller.pause()
    this.#response.once('drain', () => controller.resume())
  }

  onResponseEnd() {
    this.#isEnded = true
    this.#response.end()
  }

  onResponseError() {
    this.#isEnded = true
    this.#response.destroy()
  }
}
