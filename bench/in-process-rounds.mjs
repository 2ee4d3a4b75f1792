/** The caller's key at a gateway in process. */
export const CALLER_KEY = 'sk-bench-0123456789'

/** A vendor in the same process that accepts every request and answers with the same bytes. */
export function answeringTransport(chunks) {
  return {
    send({ body }, handler) {
      queueMicrotask(() => {
        if (Array.isArray(body)) for (const _piece of body);
        handler.onHead(200, { 'content-type': 'application/json' })
        for (const chunk of chunks) handler.onData(chunk)
        handler.onEnd()
      })
      return { abort() {}, pause() {}, resume() {} }
    },
    close: () => Promise.resolve(),
  }
}

/** Sends one request with a body in `chunks` to a gateway; rejects unless the answer has `status`, by default 200. */
export function sendOnce(gateway, { path, contentType, chunks, headers: further, status: expected = 200 }) {
  const headers = { authorization: `Bearer ${CALLER_KEY}`, 'content-type': contentType, ...further }
  return new Promise((resolve, reject) => {
    const sink = {
      closed: false,
      status: 0,
      head(status) {
        this.status = status
      },
      write: () => true,
      end() {
        if (this.status === expected) resolve()
        else reject(new Error(`status ${this.status}`))
      },
      destroy: () => reject(new Error('destroyed')),
      onDrain() {},
      onClose() {},
    }
    const request = {
      method: 'POST',
      path,
      query: '',
      header: (name) => headers[name],
      readBody: (_limit, listener) => listener(undefined, chunks),
    }
    gateway.handle(request, sink)
  })
}

/** Sends `count` requests, `parallel` at a time; awaits the result of `between` after each, if it is set. */
export async function sendMany(gateway, sent, { count, parallel, between }) {
  let left = count
  const lane = async () => {
    while (left > 0) {
      left -= 1
      await sendOnce(gateway, sent)
      if (between !== undefined) await between()
    }
  }
  await Promise.all(Array.from({ length: parallel }, lane))
}

/** Runs `once` in rounds, `parallel` at a time, after one round that is not counted; prints CPU time and allocated bytes. */
export async function measureRounds(once, { perRound, rounds, parallel }) {
  await round(once, perRound, parallel)
  const results = []
  for (let index = 0; index < rounds; index++) results.push(await round(once, perRound, parallel))
  results.sort((left, right) => left.microseconds - right.microseconds)
  const best = results[0]
  const median = results[rounds >> 1]
  console.log(
    `${best.microseconds.toFixed(2)} CPU µs/request at best, ${median.microseconds.toFixed(2)} median; ${Math.round(median.bytes)} bytes/request`,
  )
}

async function round(once, count, parallel) {
  globalThis.gc?.()
  const heapBefore = process.memoryUsage().heapUsed
  const before = process.cpuUsage()
  for (let done = 0; done < count; done += parallel) await Promise.all(Array.from({ length: parallel }, once))
  const { user, system } = process.cpuUsage(before)
  return { microseconds: (user + system) / count, bytes: (process.memoryUsage().heapUsed - heapBefore) / count }
}
