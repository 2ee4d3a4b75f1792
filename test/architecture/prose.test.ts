import { expect, test } from 'vitest'
import { findingsIn, withoutExceptions } from './check-prose.mjs'
import { EXCEPTIONS, RULES } from './prose-rules.mjs'

interface Rule {
  readonly name: string
  readonly kinds: readonly string[]
  readonly advice: string
  readonly bad: readonly string[]
  readonly good: readonly string[]
}

/** Text of a file in which a sentence is of that kind. */
const FILES: Readonly<Record<string, (sentence: string) => { path: string; text: string }>> = {
  docstring: (sentence) => ({ path: 'src/a.ts', text: `/** ${sentence} */\nconst a = 1\n` }),
  comment: (sentence) => ({ path: 'src/a.ts', text: `// A call ends. ${sentence}\nconst a = 1\n` }),
  page: (sentence) => ({ path: 'docs/a.md', text: `# A page\n\n${sentence}\n` }),
  heading: (sentence) => ({ path: 'docs/a.md', text: `# ${sentence}\n` }),
  message: (sentence) => ({ path: 'src/a.ts', text: `throw new Error('${sentence}')\n` }),
  constant: (name) => ({ path: 'src/a.ts', text: `export const ${name} = 1\n` }),
}

const found = (kind: string, sentence: string): string[] => {
  const { path, text } = FILES[kind]!(sentence)
  return findingsIn(path, text).map(({ name, advice }) => `${name}: ${advice}`)
}

const cases = (RULES as unknown as readonly Rule[]).flatMap(({ name, kinds, advice, bad, good }) =>
  kinds.flatMap((kind) => [{ rule: `${name}: ${advice}`, kind, bad, good }]),
)

test.each(cases)('finds each bad example in a $kind: $rule', ({ rule, kind, bad }) => {
  expect(bad.length).toBeGreaterThan(0)
  for (const sentence of bad) expect(found(kind, sentence), sentence).toContain(rule)
})

test.each(cases)('accepts each good example in a $kind: $rule', ({ rule, kind, good }) => {
  expect(good.length).toBeGreaterThan(0)
  for (const sentence of good) expect(found(kind, sentence), sentence).not.toContain(rule)
})

const positions = (path: string, text: string): [string, number][] =>
  findingsIn(path, text).map(({ name, line }) => [name, line])

test('reads a docstring of several lines as one text', () => {
  const text = '/**\n * The calls of a batch. They\n * are made anew, all\n * the same.\n */\nconst a = 1\n'

  expect(positions('src/a.ts', text)).toEqual([
    ['other word', 2],
    ['other word', 2],
  ])
})

test('checks the opener of the first sentence of a docstring only', () => {
  expect(positions('src/a.ts', '/** Sum of the month. It is exact. */\n')).toEqual([])
  expect(positions('src/a.ts', '  /** It is exact. */\n  sum: bigint\n')).toEqual([['pronoun opener', 1]])
})

test('ignores inline code, links, names of parameters and blocks of code', () => {
  const page = '# Page\n\nThe field `beside` is sent.\n\n```ts\n// beside\n```\n\n[Images](../pictures.md) are data.\n'

  expect(positions('docs/a.md', page)).toEqual([])
  expect(
    positions('src/a.ts', '/**\n * Adds one. See {@link told}.\n *\n * @param told Tier of the answer.\n */\n'),
  ).toEqual([])
})

test('checks each cell and each item of a page, and names its line', () => {
  const page = '| a | b |\n|---|---|\n| one | the vendors beside it |\n\n- first\n- What ends a call.\n'

  expect(positions('docs/a.md', page)).toEqual([
    ['other word', 3],
    ['what as the subject', 6],
  ])
})

test('accepts what an exception names, in that file only, and reports an exception without a use', () => {
  const exceptions = [
    { file: 'src/a.ts', part: 'beside', reason: 'a test' },
    { file: 'src/a.ts', part: 'anew', reason: 'a test' },
  ]
  const findings = ['src/a.ts', 'src/b.ts'].flatMap((path) => findingsIn(path, '// The calls beside it.\n'))

  const { findings: left, unused } = withoutExceptions(findings, exceptions)

  expect(left.map(({ path }: { path: string }) => path)).toEqual(['src/b.ts'])
  expect(unused.map(({ part }) => part)).toEqual(['anew'])
})

test('has a reason for each exception', () => {
  expect(EXCEPTIONS.filter(({ reason }) => reason.length < 10)).toEqual([])
})
