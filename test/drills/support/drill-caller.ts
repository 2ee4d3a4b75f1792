import type { BodyListener, ByteSink, GatewayRequest } from '../../../src/core/exchange.ts'
import type { StageGate } from './stage-gate.ts'

/** A caller without a socket, so that it can leave in the middle of any step; request and answer in one object. */
export class DrillCaller implements GatewayRequest, ByteSink {
  readonly method = 'POST'
  readonly path = '/v1/chat/completions'
  readonly query = ''
  readonly #gate: StageGate
  readonly #headers: Readonly<Record<string, string>>
  readonly #body: Uint8Array
  #onClose: (() => void) | undefined
  #ended = false
  closed = false
  /** Status of the answer; `undefined` if there was none. */
  status: number | undefined
  /** Headers of the answer: alternating names and values. */
  headers: readonly string[] = []
  text = ''
  /** How the answer ended: cleanly, or cut so that it does not look whole. */
  ending: 'clean' | 'cut' | undefined

  constructor(gate: StageGate, headers: Readonly<Record<string, string>>, body: unknown) {
    this.#gate = gate
    this.#headers = { 'content-type': 'application/json', ...headers }
    this.#body = Buffer.from(JSON.stringify(body))
    gate.leave = () => this.leave()
  }

  header(name: string): string | undefined {
    return this.#headers[name]
  }

  readBody(_limitBytes: number, listener: BodyListener): void {
    const isOverdue = this.#gate.pass('receive body')
    // A server that has waited too long for a body cuts the connection.
    if (isOverdue) this.leave()
    if (this.closed) listener('aborted', [])
    else listener(undefined, [this.#body])
  }

  leave(): void {
    if (this.closed || this.#ended) return
    this.closed = true
    this.#onClose?.()
  }

  head(status: number, headers: readonly string[]): void {
    this.#gate.pass('answer head')
    if (this.status !== undefined) throw new Error('two answers to one request')
    if (this.closed) return
    this.status = status
    this.headers = headers
  }

  write(bytes: Uint8Array | string): boolean {
    const isFull = this.#gate.pass('answer bytes')
    if (!this.closed) this.text += Buffer.from(bytes as Uint8Array).toString()
    return !isFull
  }

  end(bytes?: Uint8Array | string): void {
    this.#gate.pass('answer end')
    if (this.closed) return
    if (bytes !== undefined) this.text += Buffer.from(bytes as Uint8Array).toString()
    this.#ended = true
    this.ending = 'clean'
  }

  destroy(): void {
    this.closed = true
    this.ending = 'cut'
  }

  /** A caller that has stopped reading never drains. */
  onDrain(_listener: () => void): void {}

  onClose(listener: () => void): void {
    this.#onClose = listener
    if (this.closed) listener()
  }
}
