import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runSignalbox } from '../../src/cli/signalbox.ts'
import { ENDPOINTS } from '../../src/endpoints/registry.ts'
import { typeFaults } from './support/check-types.ts'
import { type CodeBlock, codeBlocks, ROOT, readPages, shownParts } from './support/markdown.ts'

const blocks = readPages().flatMap(codeBlocks)

function blocksOf(...languages: readonly string[]): CodeBlock[] {
  return blocks.filter((block) => languages.includes(block.language))
}

/** A slip and its correction, compiled along with the pages: finding no fault in those must mean something. */
const planted = ["biling: 'off'", "billing: 'off'"].map((option) => ({
  page: 'planted.md',
  line: 1,
  language: 'ts',
  code: `import { createGateway } from 'signalbox'\ncreateGateway({ vendors: [], ${option} })\n`,
}))

test('every block of code compiles against the source', { timeout: 120_000 }, () => {
  // The compiler sees parts of examples with what comes before them, because it sees the examples.
  const shown = [...shownParts().values()]
  const programs = blocksOf('ts', 'js').filter(({ code }) => !shown.includes(code))

  const faults = typeFaults([...programs, ...planted])

  expect(programs.length).toBeGreaterThan(10)
  expect(faults).toHaveLength(1)
  expect(faults[0]).toMatch(/^planted\.md:2: .*biling/)
})

test('every block of JSON parses', () => {
  const documents = blocksOf('json')

  expect(documents.length).toBeGreaterThan(0)
  for (const { code, page, line } of documents) expect(() => JSON.parse(code), `${page}:${line}`).not.toThrow()
})

test('blocks are in a language that is checked', () => {
  const known = ['ts', 'js', 'json', 'sh', 'text']
  // `scaling.test.ts` runs the SQL of its page, and `adding-a-meter.test.ts` that of its own.
  const isChecked = ({ language, page }: (typeof blocks)[number]) =>
    known.includes(language) || (language === 'sql' && ['docs/scaling.md', 'docs/adding-a-meter.md'].includes(page))

  expect(blocks.filter((block) => !isChecked(block)).map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

/** The help of the command, with that of every action. */
async function wholeHelp(): Promise<string> {
  const lines: string[] = []
  const print = (line: string): void => void lines.push(line)
  const terminal = { environment: {}, print }
  await runSignalbox(['--help'], terminal, '0.0.0')
  const usages = lines.join('\n').match(/^ {2}signalbox [a-z]+(?: [a-z-]+)?/gm) ?? []
  for (const usage of usages) await runSignalbox([...usage.trim().split(' ').slice(1), '--help'], terminal, '0.0.0')
  return lines.join('\n')
}

test('shell blocks call scripts, commands, flags and routes that exist', async () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }
  const help = await wholeHelp()
  const routes = [
    ...ENDPOINTS.map((endpoint) => endpoint.path),
    '/v1/models',
    '/v1/account',
    '/livez',
    '/readyz',
    '/healthz',
  ]
  const offences: string[] = []

  for (const { code, page, line } of blocksOf('sh')) {
    const report = (what: string): void => void offences.push(`${page}:${line}: ${what}`)
    for (const [, script = ''] of code.matchAll(/npm run (\S+)/g)) if (!(script in manifest.scripts)) report(script)
    for (const [, script = ''] of code.matchAll(/npm (start|test)\b/g))
      if (!(script in manifest.scripts)) report(script)
    for (const [, command = ''] of code.matchAll(/^(?:npx )?signalbox ((?:accounts |keys )?\S+)/gm))
      if (command !== '--help' && !help.includes(`signalbox ${command}`)) report(`signalbox ${command}`)
    for (const [command] of code.matchAll(/signalbox (?:serve|models|accounts|keys)[^\n]*/g))
      for (const [flag] of command.matchAll(/ --[a-z-]+/g)) if (!help.includes(flag.trim())) report(flag)
    for (const [, path = ''] of code.matchAll(/https?:\/\/[\w.:-]+(\/[\w./-]*)/g))
      if (!routes.some((route) => path.endsWith(route))) report(path)
  }

  expect(blocksOf('sh').length).toBeGreaterThan(3)
  expect(offences).toEqual([])
})
