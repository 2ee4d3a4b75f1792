import { expect, test } from 'vitest'
import { endOfExample, startExample } from '../examples/support/run-example.ts'
import { freePort } from '../support/started-process.ts'
import { codeBlocks, readPage, section, shownParts } from './support/markdown.ts'

const page = readPage('docs/getting-started.md')

test.each([
  ['first-gateway', 'Start a gateway'],
  ['first-call', 'Call it'],
])('shows the program %s on the page as it is run', (name, heading) => {
  const blocks = codeBlocks({ path: page.path, text: section(page, heading) })

  expect(blocks.map(({ code }) => code)).toContain(shownParts().get(name))
})

test('the programs do what the page says, and print what it shows', async () => {
  const port = await freePort()
  const gateway = startExample('first-gateway', { PORT: String(port) })
  const command = await gateway.printed(/^(BASE_URL=.*) node first-call\.mjs$/m)
  const environment = Object.fromEntries(command.split(' ').map((pair) => pair.split('=') as [string, string]))

  const { code, output } = await endOfExample('first-call', environment)
  await gateway.stop()

  const [shown] = codeBlocks({ path: page.path, text: section(page, 'Call it') }).filter(
    (block) => block.language === 'text',
  )
  expect(code).toBe(0)
  expect(output).toBe(shown?.code)
})

test('the page is read in five minutes', () => {
  const words = page.text.split(/\s+/).length

  // 200 words a minute, programs included.
  expect(words).toBeLessThan(1_000)
})
