import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { linesOf } from '../../src/tasks/batches/lines.ts'

async function* piecesOf(...pieces: readonly string[]): AsyncIterable<Uint8Array> {
  for (const piece of pieces) yield Buffer.from(piece)
}

test('lines end where pieces do not, and blank ones are given', async () => {
  const lines: string[] = []
  for await (const line of linesOf(piecesOf('a', 'b\n', '\nc\nd'), 10))
    lines.push(typeof line === 'symbol' ? 'too long' : Buffer.from(line).toString())

  expect(lines).toEqual(['ab', '', 'c', 'd'])
})

test('a file of line breaks alone leaves other work its turns of the event loop', async () => {
  let turns = 0
  let isOver = false
  const take = (): void => {
    turns++
    if (!isOver) setImmediate(take)
  }
  setImmediate(take)
  let lines = 0
  for await (const _line of linesOf(piecesOf('\n'.repeat(50_000)), 10)) lines++
  isOver = true

  expect(lines).toBe(50_000)
  expect(turns).toBeGreaterThan(100)
})
