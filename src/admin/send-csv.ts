import { Buffer } from 'node:buffer'
import type { ByteSink } from '../core/exchange.ts'
import type { CsvAnswer } from './admin-route.ts'

/** Sends a file of lines at the caller's speed. A failure before the first line becomes an error answer; later, the file is cut. */
export async function sendCsv(sink: ByteSink, requestId: string, { fileName, lines }: CsvAnswer): Promise<void> {
  let isBegun = false
  for await (const piece of lines) {
    if (sink.closed) return
    if (!isBegun) sink.head(200, headersOf(fileName, requestId))
    isBegun = true
    if (!sink.write(Buffer.from(piece))) await roomOf(sink)
  }
  if (!isBegun) sink.head(200, headersOf(fileName, requestId))
  sink.end()
}

/** Resolves when the caller has read the data, or has disconnected. */
function roomOf(sink: ByteSink): Promise<void> {
  return new Promise((resolve) => {
    sink.onDrain(resolve)
    sink.onClose(resolve)
  })
}

function headersOf(fileName: string, requestId: string): string[] {
  return [
    ...['content-type', 'text/csv; charset=utf-8', 'cache-control', 'no-store', 'x-content-type-options', 'nosniff'],
    ...['content-disposition', `attachment; filename="${fileName.replaceAll(/[^\w.-]/g, '_')}"`],
    ...['x-request-id', requestId],
  ]
}
