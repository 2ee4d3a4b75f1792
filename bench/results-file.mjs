import { readFile, writeFile } from 'node:fs/promises'
import { withSection } from './results-sections.mjs'
import { SUITES } from './suites/suites.mjs'

const FILE = new URL('./RESULTS.md', import.meta.url)

/** Writes the section of one suite into `bench/RESULTS.md`; the others stay as they are. */
export async function writeSection({ suite, table, command, machine, date }) {
  const body = `\`${command}\` · ${date} · ${machine}\n\n${suite.intro}\n\n${table}`
  const headings = SUITES.map(({ heading }) => heading)
  await writeFile(FILE, withSection(await readFile(FILE, 'utf8'), { heading: suite.heading, body, headings }))
}
