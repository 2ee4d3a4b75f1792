import type { NativeCall } from '../../endpoints/native-batches.ts'
import type { PipelineContext } from '../../pipeline/pipeline-context.ts'
import type { TransportControl, TransportFailure, TransportHandler } from '../../transport/transport.ts'
import { type CalledVendor, ownRequest } from '../call-vendor.ts'
import { linesOf, TOO_LONG } from './batch-lines.ts'

/** Maximum length of a line of results: an answer with images or many vectors. */
const LONGEST_LINE_BYTES = 128 * 1024 * 1024

/** Idle timeout of a vendor that sends results, in milliseconds. */
const SILENCE_MS = 60_000

/** Thrown if the results of a vendor cannot be read now, or ended too early. */
export class ResultsUnreadable extends Error {}

/**
 * Yields the lines of a result file at a vendor, read on demand.
 * @throws ResultsUnreadable
 */
export async function* resultLines(
  context: PipelineContext,
  { vendor, credentials }: CalledVendor,
  { method, path, headers }: NativeCall,
): AsyncIterable<string> {
  const credential = await credentials?.take()
  const download = new Download()
  const call = { method, path, headers, timeoutMs: SILENCE_MS }
  download.begin(context.transport.send(ownRequest(context, vendor, call, credential), download))
  context.taskCalls.add(download)
  try {
    for await (const line of linesOf(download, LONGEST_LINE_BYTES)) {
      if (line === TOO_LONG) throw new ResultsUnreadable('a line of the results is too long')
      yield Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString()
    }
  } catch (error) {
    if (download.status === 401 && credential !== undefined) credentials?.invalidate(credential)
    throw error
  } finally {
    context.taskCalls.delete(download)
    download.abort()
  }
}

/** Body of an answer, chunk by chunk. The vendor's connection is paused while a chunk is used. */
class Download implements TransportHandler, AsyncIterable<Uint8Array> {
  status: number | undefined
  #pieces: Uint8Array[] = []
  #control: TransportControl | undefined
  #isEnded = false
  #failure: Error | undefined
  #wake: (() => void) | undefined

  begin(control: TransportControl): void {
    this.#control = control
  }

  abort(): void {
    if (!this.#isEnded) this.#control?.abort()
  }

  onHead(status: number): void {
    this.status = status
    if (status !== 200) this.#fail(new ResultsUnreadable(`the vendor answered ${status}`))
  }

  onData(chunk: Uint8Array): void {
    // A resumed connection may deliver an empty chunk. Pausing for it would repeat this endlessly.
    if (this.#failure !== undefined || chunk.byteLength === 0) return
    // The network layer may reuse its buffer.
    this.#pieces.push(Uint8Array.from(chunk))
    this.#control?.pause()
    this.#wake?.()
  }

  onEnd(): void {
    this.#isEnded = true
    this.#wake?.()
  }

  onFailure({ phase, kind, error }: TransportFailure): void {
    this.#isEnded = true
    this.#fail(new ResultsUnreadable(`${phase} ${kind}`, { cause: error }))
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    for (;;) {
      const piece = this.#failure === undefined ? this.#pieces.shift() : undefined
      if (piece !== undefined) yield piece
      else if (this.#failure !== undefined) throw this.#failure
      else if (this.#isEnded) return
      else {
        const woken = new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        this.#control?.resume()
        await woken
      }
    }
  }

  #fail(failure: Error): void {
    this.#failure ??= failure
    this.#wake?.()
  }
}
