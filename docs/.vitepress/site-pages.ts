import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Root of the repository. */
export const ROOT = join(import.meta.dirname, '../..')

/** A page of the site. */
export interface SitePage {
  /** Path below `docs`: `billing.md`, `decisions/0011-sqlite.md`. */
  readonly path: string
  /** First heading of the page. */
  readonly title: string
  /** The first sentences below that heading as plain text, or the names of its sections if it has none. */
  readonly summary: string
}

/** Pages under one heading of the sidebar. */
export interface SiteSection {
  readonly title: string
  readonly pages: readonly SitePage[]
}

/** The guides by topic, in reading order. A test makes sure that none is missing. */
const GUIDES: readonly { readonly title: string; readonly names: readonly string[] }[] = [
  {
    title: 'Start',
    names: [
      'getting-started',
      'mounting',
      'serverless',
      'hosts',
      'options',
      'client',
      'migrating',
      'responses',
      'claude-code',
      'codex',
      'coding-clients',
      'mcp',
    ],
  },
  {
    title: 'Requests',
    names: [
      'models',
      'vendors',
      'credentials',
      'images',
      'video',
      'webhooks',
      'speech',
      'transcriptions',
      'moderations',
      'completions',
      'rerank',
      'spec-fields',
      'errors',
    ],
  },
  {
    title: 'Operation',
    names: [
      'authentication',
      'keys',
      'billing',
      'holds',
      'accounts',
      'usage',
      'limits',
      'caching',
      'batches',
      'hooks',
      'routing',
      'events',
      'logging',
      'health',
      'configuration',
      'deploying',
      'operating',
      'monitoring',
      'scaling',
      'console',
      'admin-api',
    ],
  },
  {
    title: 'Inside',
    names: ['testing', 'architecture', 'adding-an-endpoint', 'adding-a-vendor', 'adding-a-store', 'adding-a-meter'],
  },
]

/**
 * The sections of the sidebar: the guides by topic, then the index of the decisions and the decisions by number.
 * @throws Error for a guide that is not there or has no heading.
 */
export function siteSections(): SiteSection[] {
  const records = readdirSync(join(ROOT, 'docs/decisions'))
    .filter((name) => /^\d+-.+\.md$/.test(name))
    .sort()
    .map((name) => `decisions/${name}`)
  const decisions = ['decisions/README.md', ...records].map(readSitePage)
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
  return { path, title: heading[1] ?? '', summary: summaryOf(body) }
}

/** Shorter sentences say too little alone, and take the next one along. */
const MIN_SUMMARY_CHARACTERS = 60

/** The first sentences, else the names of the sections. */
function summaryOf(body: string): string {
  const [introduction = '', ...sections] = body.replaceAll(/^```[\s\S]*?^```/gm, '').split(/^## /m)
  // Status lines, lists and tables do not introduce a page.
  const paragraph = introduction.split(/\n\s*\n/).find((text) => /^\s*(?!Status: )[^\s\d|#-]/.test(text))
  if (paragraph === undefined) return sections.map((section) => section.split('\n', 1)[0]).join(', ')
  let summary = ''
  // A full stop inside backquotes ends nothing.
  for (const [sentence] of plainText(paragraph).matchAll(/(?:`[^`]*`|[^`])+?(?:[.!?](?=\s|$)|$)/g)) {
    summary += sentence
    if (summary.length >= MIN_SUMMARY_CHARACTERS) break
  }
  return summary.replace(/:$/, '.')
}

function plainText(markdown: string): string {
  return markdown
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('**', '')
    .replaceAll(/\s+/g, ' ')
    .trim()
}
