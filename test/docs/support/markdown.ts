import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Root of the project. */
export const ROOT = join(import.meta.dirname, '../../..')

/** A page of the documentation. */
export interface Page {
  /** Path from the root: `docs/errors.md`. */
  readonly path: string
  readonly text: string
}

/** A fenced block of a page. */
export interface CodeBlock {
  readonly page: string
  /** Line of its first line of code, from 1. */
  readonly line: number
  readonly language: string
  readonly code: string
}

/** Reads a page. */
export function readPage(path: string): Page {
  return { path, text: readFileSync(join(ROOT, path), 'utf8') }
}

/** Returns the README and every page directly in `docs`. */
export function readPages(): Page[] {
  const docs = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md'))
  return [readPage('README.md'), ...docs.sort().map((name) => readPage(`docs/${name}`))]
}

/** All fenced blocks, in order. */
export function codeBlocks({ path, text }: Page): CodeBlock[] {
  const blocks: CodeBlock[] = []
  let open: { language: string; line: number; code: string[] } | undefined
  text.split('\n').forEach((line, index) => {
    const fence = /^```(\S*)/.exec(line)
    if (open === undefined) {
      if (fence !== null) open = { language: fence[1] ?? '', line: index + 2, code: [] }
    } else if (fence !== null) {
      blocks.push({ page: path, line: open.line, language: open.language, code: `${open.code.join('\n')}\n` })
      open = undefined
    } else open.code.push(line)
  })
  if (open !== undefined) throw new Error(`${path}:${open.line}: the block is not closed`)
  return blocks
}

/** Parts of examples that pages show, by the name of the example: the lines between `// #region shown` and `// #endregion`. */
export function shownParts(): ReadonlyMap<string, string> {
  const names = readdirSync(join(ROOT, 'examples')).filter((name) => name.endsWith('.mjs'))
  const parts = names.map((name) => {
    const [, part] = SHOWN.exec(readFileSync(join(ROOT, 'examples', name), 'utf8')) ?? []
    return [name.replace('.mjs', ''), part] as const
  })
  return new Map(parts.flatMap(([name, part]) => (part === undefined ? [] : [[name, part] as const])))
}

const SHOWN = /^\/\/ #region shown\n([\s\S]*?)^\/\/ #endregion$/m

/** The text of a page outside of fenced blocks. */
export function prose({ text }: Page): string {
  return text.replaceAll(/^```[\s\S]*?^```/gm, '')
}

/** The section below a heading, up to the next heading of the same or a higher level. */
export function section({ path, text }: Page, heading: string): string {
  const lines = text.split('\n')
  const start = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading)
  if (start === -1) throw new Error(`${path}: there is no heading ${JSON.stringify(heading)}`)
  const level = lines[start]!.indexOf(' ')
  const length = lines.slice(start + 1).findIndex((line) => /^#+ /.test(line) && line.indexOf(' ') <= level)
  return lines.slice(start, length === -1 ? undefined : start + 1 + length).join('\n')
}

/** The first table of a text, as cells; the heading row first, without the ruler. Backquotes are taken off. */
export function firstTable(text: string): string[][] {
  const rows = /(?:^\|.*\n?)+/m.exec(text)?.[0].trim().split('\n') ?? []
  return rows
    .filter((_row, index) => index !== 1)
    .map((row) =>
      row
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim().replace(/^`([^`]*)`$/, '$1')),
    )
}
