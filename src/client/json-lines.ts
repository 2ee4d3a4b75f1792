import type { BinaryAnswer } from './binary-answer.ts'

/**
 * Yields the values of an answer with one JSON value per line. The request is sent when iteration starts.
 * @throws ClientError if the answer breaks off.
 */
export async function* jsonLines<Value>(ask: () => Promise<BinaryAnswer>): AsyncIterable<Value> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of await ask()) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) yield JSON.parse(line) as Value
  }
  if (rest !== '') yield JSON.parse(rest) as Value
}
