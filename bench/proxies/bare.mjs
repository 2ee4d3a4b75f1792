import { createServer } from 'node:http'

export const name = 'bare'
export const title = 'bare Node proxy'
/** It knows nothing of dialects: scenarios with translation send it the vendor's own. */
export const isTranslating = false

/** The floor: Node's HTTP server and undici's dispatch, nothing read and nothing changed. */
export async function serve({ upstreamPort }) {
  const { Pool } = await import('undici')
  const pool = new Pool(`http://127.0.0.1:${upstreamPort}`, { connections: null, pipelining: 1 })
  const server = createServer((request, response) => {
    const parts = []
    request.on('data', (part) => parts.push(part))
    request.on('end', () => {
      const { path, headers } = { path: request.url, headers: request.headers }
      pool.dispatch(
        {
          path,
          method: request.method,
          headers: ['content-type', headers['content-type'], 'authorization', headers.authorization],
          body: parts.length === 1 ? parts[0] : Buffer.concat(parts),
        },
        new Relay(response),
      )
    })
  })
  return { server }
}

class Relay {
  #response
  #controller
  #isEnded = false

  constructor(response) {
    this.#response = response
    response.on('close', () => {
      // Also wakes a relay that was paused: `drain` never comes on a response that is gone.
      if (!this.#isEnded) this.#controller?.abort(new Error('the caller has left'))
    })
  }

  onRequestStart(controller) {
    this.#controller = controller
    // The caller may have left while the request waited for a connection, which would be lost to the pool.
    if (this.#response.destroyed) controller.abort(new Error('the caller has left'))
  }

  onResponseStart(_controller, status, headers) {
    const head = ['content-type', headers['content-type']]
    const length = headers['content-length']
    if (length !== undefined) head.push('content-length', length)
    this.#response.writeHead(status, head)
  }

  onResponseData(controller, chunk) {
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
