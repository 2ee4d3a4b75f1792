import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from './support/markdown.ts'

const source = readFileSync(join(ROOT, 'src/core/events.ts'), 'utf8')
const page = readFileSync(join(ROOT, 'docs/events.md'), 'utf8')

/** Fields of each event, as the type declares them. */
const declared = new Map(
  source
    .split(/^ {2}\| \{$/m)
    .slice(1)
    .map((member) => {
      const type = /readonly type: '([a-z-]+)'/.exec(member)?.[1] ?? ''
      const fields = [...member.matchAll(/^ {6}readonly (\w+):/gm)].map(([, name]) => name)
      return [type, fields.filter((name) => name !== 'type')]
    }),
)

/** Text below the heading of each event. */
const documented = new Map(
  page
    .split(/^### /m)
    .slice(1)
    .map((section) => [/^`([a-z-]+)`/.exec(section)?.[1] ?? '', section.split(/^## /m)[0] ?? '']),
)

test('docs/events.md has every event of the type, and no other', () => {
  expect([...declared.keys()].length).toBeGreaterThan(10)
  expect([...documented.keys()].sort()).toEqual([...declared.keys()].sort())
})

test.each([...declared])('docs/events.md names every field of %s', (type, fields) => {
  expect(fields.filter((name) => !documented.get(type)?.includes(`\`${name}\``))).toEqual([])
})
