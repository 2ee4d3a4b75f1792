import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Root of the repository. */
export const ROOT = join(import.meta.dirname, '../..')

/** A page of the site. */
export interface SitePage {
  /** Path below `docs`: `billing.md`, `decisions/0003-biome.md`. */
  readonly path: string
  /** Its first heading. */
  readonly title: string
  /** The first sentence below that heading, as plain text; empty when nothing but a list, a table or code follows. */
  readonly summary: string
}

/** Pages under one heading of the sidebar. */
export interface SiteSection {
  readonly title: string
  readonly pages: readonly SitePage[]
}

/** The guides by topic, in reading order. A test makes sure that none is missing. */
const GUIDES: readonly { readonly title: string; readonly names: readonly string[] }[] = [
  { title: 'Start', names: ['getting-started', 'client', 'migrating', 'claude-code', 'mcp'] },
  { title: 'Requests', names: ['models', 'images', 'video', 'webhooks', 'speech', 'spec-fields', 'errors'] },
  { title: 'Operation', names: ['keys', 'billing', 'limits', 'routing', 'scaling'] },
  { title: 'Inside', names: ['testing', 'architecture', 'adding-a-vendor', 'adding-a-store'] },
]

/**
 * The sections of the sidebar: the guides by topic, then the decisions by number.
 * @throws Error for a guide that is not there or has no heading.
 */
export function siteSections(): SiteSection[] {
  const decisions = readdirSync(join(ROOT, 'docs/decisions'))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => readSitePage(`decisions/${name}`))
  const guides = GUIDES.map(({ title, names }) => ({ title, pages: names.map((name) => readSitePage(`${name}.md`)) }))
  return [...guides, { title: 'Decisions', pages: decisions }]
}

/** Reads a page below `docs`. */
export function readSitePage(path: string): SitePage {
  const file = join(ROOT, 'docs', path)
  if (!existsSync(file)) throw new Error(`docs/${path} is in the sidebar and not in the repository`)
  const text = readFileSync(file, 'utf8')
  const heading = /^# (.+)$/m.exec(text)
  if (heading === null) throw new Error(`docs/${path} has no heading`)
  const body = text.slice(heading.index + heading[0].length)
  return { path, title: heading[1] ?? '', summary: firstSentence(body) }
}

/** Headings, dates, lists, tables and code are no sentences. */
function firstSentence(body: string): string {
  const paragraphs = body
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .split(/\n\s*\n/)
    .map((paragraph) => plainText(paragraph.trim()))
  const first = paragraphs.find((paragraph) => /^[^#|\-\d]/.test(paragraph)) ?? ''
  return /^.+?[.!?:](?=\s|$)/.exec(first)?.[0].replace(/:$/, '.') ?? first
}

function plainText(markdown: string): string {
  return markdown
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('**', '')
    .replaceAll(/\s+/g, ' ')
    .replace(/^Context\. /, '')
}
