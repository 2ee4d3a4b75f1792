import { chatBody, type StartedGateway } from '../../../support/start-gateway.ts'

/** Callers at once. */
export const LANES = 8

/** Callers that send one request after the other, and what they got. */
export class ChatLoad {
  readonly answered: string[] = []
  readonly refused: string[] = []
  readonly others: number[] = []
  /** Longest time until an answer, in milliseconds. */
  slowestMs = 0
  #isOver = false
  #wake = (): void => {}
  readonly #lanes: Promise<unknown>

  constructor(gateway: StartedGateway) {
    this.#lanes = Promise.all(Array.from({ length: LANES }, () => this.#lane(gateway)))
  }

  async #lane(gateway: StartedGateway): Promise<void> {
    while (!this.#isOver) {
      const startedMs = performance.now()
      const response = await gateway.post('/v1/chat/completions', chatBody('chat-relayed', 'Hello'))
      await response.arrayBuffer()
      this.slowestMs = Math.max(this.slowestMs, performance.now() - startedMs)
      const requestId = response.headers.get('x-request-id')!
      if (response.status === 200) this.answered.push(requestId)
      else if (response.status === 503) this.refused.push(requestId)
      else this.others.push(response.status)
      this.#wake()
    }
  }

  /** Resolves when so many more requests have ended in that list. */
  async more(list: readonly unknown[], count: number): Promise<void> {
    const enough = list.length + count
    while (list.length < enough) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#lanes
  }
}
