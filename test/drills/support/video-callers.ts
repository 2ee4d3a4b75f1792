import type { VideoProcess } from './video-processes.ts'

const PATH = '/v1/videos/generations'

/** State of a video that a caller requested. */
export interface WantedVideo {
  readonly prompt: string
  /** Id of the task; `undefined` if its submission was cut off, and a retry only reported that the first is still in progress. */
  readonly taskId: string | undefined
}

/** Callers who submit videos and ask again with the same Idempotency-Key until they have an answer. */
export class VideoCallers {
  readonly #key: string
  readonly #webhookUrl: string
  readonly #server: () => Promise<VideoProcess>
  readonly wanted: WantedVideo[] = []
  /** Called whenever a caller has its answer. */
  onAnswer: () => void = () => undefined

  constructor(options: {
    readonly key: string
    readonly webhookUrl: string
    readonly server: () => Promise<VideoProcess>
  }) {
    this.#key = options.key
    this.#webhookUrl = options.webhookUrl
    this.#server = options.server
  }

  /** Submits all of them, so many at once. */
  async submitAll(prompts: readonly string[], atOnce: number): Promise<void> {
    const waiting = [...prompts]
    const caller = async (): Promise<void> => {
      for (let prompt = waiting.shift(); prompt !== undefined; prompt = waiting.shift()) {
        this.wanted.push({ prompt, taskId: await this.#submit(prompt) })
        this.onAnswer()
      }
    }
    await Promise.all(Array.from({ length: atOnce }, caller))
  }

  async #submit(prompt: string): Promise<string | undefined> {
    for (;;) {
      const { url } = await this.#server()
      const answer = await this.#post(url, prompt)
      if (answer === undefined || answer.status === 503) continue
      if (answer.status === 409) return undefined
      if (answer.status !== 202) throw new Error(`${answer.status}: ${answer.text}`)
      return (JSON.parse(answer.text) as { task_id: string }).task_id
    }
  }

  /** Returns `undefined` if the connection broke. */
  async #post(url: string, prompt: string): Promise<{ status: number; text: string } | undefined> {
    try {
      const response = await fetch(`${url}${PATH}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${this.#key}`,
          'content-type': 'application/json',
          'idempotency-key': prompt,
        },
        body: JSON.stringify({
          model: 'wv2.7-t2v',
          duration: 4,
          resolution: '720p',
          input: { prompt },
          webhook_url: this.#webhookUrl,
        }),
      })
      return { status: response.status, text: await response.text() }
    } catch {
      return undefined
    }
  }
}
