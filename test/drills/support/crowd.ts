import { Agent, request } from 'node:http'

/** Many requests at the same time, each on a connection of its own. */
export interface Crowd {
  /** Statuses of the answers so far. */
  readonly statuses: readonly number[]
  /** Called at every answer. */
  onAnswer: () => void
  /** All statuses, once everybody has an answer. */
  readonly all: Promise<readonly number[]>
}

/** Sends a JSON body `count` times at once, to the URLs in turn. */
export function sendCrowd(
  urls: readonly string[],
  options: { readonly count: number; readonly headers: Readonly<Record<string, string>>; readonly body: unknown },
): Crowd {
  const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY })
  const json = Buffer.from(JSON.stringify(options.body))
  const headers = { ...options.headers, 'content-type': 'application/json', 'content-length': json.byteLength }
  const statuses: number[] = []
  const post = (url: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const sent = request(url, { method: 'POST', agent, headers }, (response) => {
        response.resume().once('end', () => {
          statuses.push(response.statusCode!)
          crowd.onAnswer()
          resolve()
        })
      })
      sent.once('error', reject).end(json)
    })
  const calls = Array.from({ length: options.count }, (_, index) => post(urls[index % urls.length]!))
  const crowd: Crowd = {
    statuses,
    onAnswer: () => undefined,
    all: Promise.all(calls).then(() => {
      agent.destroy()
      return statuses
    }),
  }
  return crowd
}
