import { Buffer } from 'node:buffer'
import type { LinesBody } from '../../endpoints/native-batches.ts'
import type { BatchSettings } from '../../pipeline/pipeline-context.ts'
import type { StreamedBody } from '../../transport/transport.ts'
import type { NativePlan } from './native-journal.ts'

const NEWLINE = 0x0a

/**
 * Creates a body from lines in the store, again for each try.
 * @param id Blob with the lines; each ends with a line break.
 */
export function linesBody(
  { blobs }: BatchSettings,
  id: string,
  { before, between, after }: LinesBody,
  { requests, byteLength }: Pick<NativePlan, 'requests' | 'byteLength'>,
): () => StreamedBody {
  const betweens = Buffer.byteLength(between) * (requests - 1)
  const lineBytes = byteLength - requests
  const total = Buffer.byteLength(before) + lineBytes + betweens + Buffer.byteLength(after)
  async function* content(): AsyncIterable<Uint8Array> {
    const blob = await blobs.get(id)
    if (blob === undefined) throw new Error(`the lines ${id} are gone`)
    if (before !== '') yield Buffer.from(before)
    const separator = Buffer.from(between)
    let left = requests - 1
    for await (const piece of blob.content) yield joined(piece)
    if (after !== '') yield Buffer.from(after)

    /** Returns the chunk with `between` in place of each line break, except the last one of the file. */
    function joined(piece: Uint8Array): Uint8Array {
      const parts: Uint8Array[] = []
      let start = 0
      for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, start)) {
        parts.push(piece.subarray(start, end))
        if (left-- > 0) parts.push(separator)
        start = end + 1
      }
      parts.push(piece.subarray(start))
      return Buffer.concat(parts)
    }
  }
  return () => ({ byteLength: total, content: content() })
}
