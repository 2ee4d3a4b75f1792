import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { transform } from 'esbuild'
import { expect, test } from 'vitest'
import { codeBlocks, ROOT, readPage } from './support/markdown.ts'

const programs = codeBlocks(readPage('docs/batches.md')).filter(
  ({ code }) => code.includes('await gateway.start()') || code.includes('createServer('),
)

/** Runs a program of the page as its reader would, with the package that has been built. */
async function outputOf(code: string): Promise<{ code: unknown; output: string }> {
  const { code: script } = await transform(code, { loader: 'ts', format: 'esm' })
  const child = spawn(process.execPath, ['--input-type=module', '-'], { cwd: ROOT, stdio: ['pipe', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  child.stdin.end(script)
  const [exitCode] = (await once(child, 'close')) as [unknown]
  return { code: exitCode, output }
}

test('the first program sends a file of requests and prints an answer to each', async () => {
  const { code, output } = await outputOf(programs[0]!.code)

  const lines = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { custom_id: string; response: { status_code: number } })
  expect([code, lines.map(({ custom_id, response }) => [custom_id, response.status_code])]).toEqual([
    0,
    [
      ['question-0', 200],
      ['question-1', 200],
    ],
  ])
})

test('the program for clients of Anthropic prints each result', async () => {
  expect(programs.length).toBe(2)
  const { code, output } = await outputOf(programs[1]!.code)

  expect([code, output.match(/^question-\d \{ type: 'text', text: .* \}$/gm)?.length]).toEqual([0, 2])
})
