import { sseReader } from '../../src/wire/sse.ts'

/** Reads a streamed answer to its end and gives the data of its events. */
export async function readEvents(response: Response): Promise<string[]> {
  const data: string[] = []
  const reader = sseReader((event) => data.push(event.data))
  reader.push(new Uint8Array(await response.arrayBuffer()))
  reader.end()
  return data
}
