import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, posix } from 'node:path'
import { ROOT } from './site-pages.ts'

/** Folder of the site that shows files from outside of `docs`. */
const FILES_FOLDER = 'files'

/** Languages that the site can colour, by the ending of a file. */
const LANGUAGES: ReadonlyMap<string, string> = new Map([
  ['.mjs', 'js'],
  ['.js', 'js'],
  ['.ts', 'ts'],
  ['.json', 'json'],
])

/** A file of the repository that a page links to and that is not a page itself. */
export interface RepositoryFile {
  /** Path from the root: `examples/express.mjs`. */
  readonly path: string
  /** Path of its page below `files`, without an ending. */
  readonly name: string
  /** Content of the page, in Markdown. */
  readonly content: string
}

/** All files that pages link to, and those that Markdown files among them link to in turn. */
export function linkedFiles(): RepositoryFile[] {
  const files = new Map<string, RepositoryFile>()
  const queue = pagePaths()
  for (const source of queue) {
    for (const [, href = ''] of markdownOf(source).matchAll(/\]\(([^)\s]+)\)/g)) {
      const path = repositoryPath(href, source)
      if (path === undefined || path.startsWith('docs/') || files.has(path)) continue
      files.set(path, { path, name: nameOf(path), content: contentOf(path) })
      if (path.endsWith('.md')) queue.push(path)
    }
  }
  return [...files.values()]
}

/**
 * Where a link leads on the site.
 * @param href Text as it is in the file.
 * @param page Path of the page below `docs`, as VitePress knows it.
 * @returns undefined for a link that is right as it is: within `docs`, to an anchor, or to the web.
 */
export function siteLink(href: string, page: string): string | undefined {
  const source = sourceOf(page)
  const path = repositoryPath(href, source)
  if (path === undefined) return undefined
  const anchor = href.includes('#') ? href.slice(href.indexOf('#')) : ''
  if (!path.startsWith('docs/')) return `/${FILES_FOLDER}/${nameOf(path)}.html${anchor}`
  return source.startsWith('docs/') ? undefined : `/${path.slice('docs/'.length)}${anchor}`
}

function pagePaths(): string[] {
  return readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /^(decisions\/)?[^/[\]]+\.md$/.test(name))
    .map((name) => `docs/${name}`)
}

/** The path from the root that a link in a file names; undefined for anchors and addresses. */
function repositoryPath(href: string, source: string): string | undefined {
  if (/^(?:[a-z][a-z+.-]*:|#|\/)/i.test(href)) return undefined
  const [target = ''] = href.split('#')
  const path = posix.normalize(posix.join(posix.dirname(source), decodeURI(target))).replace(/\/$/, '')
  if (path.startsWith('..') || !existsSync(join(ROOT, path)))
    throw new Error(`${source} links to ${href}: no such file`)
  return path
}

/** The file that a page shows. */
function sourceOf(page: string): string {
  if (!page.startsWith(`${FILES_FOLDER}/`)) return `docs/${page}`
  const name = page.slice(FILES_FOLDER.length + 1)
  return existsSync(join(ROOT, name)) ? name : name.replace(/\.md$/, '')
}

function nameOf(path: string): string {
  return path.replace(/\.md$/, '')
}

function contentOf(path: string): string {
  const file = join(ROOT, path)
  const title = `# ${path}\n\n`
  if (statSync(file).isDirectory())
    return (
      title +
      readdirSync(file)
        .map((name) => `- \`${name}\`\n`)
        .join('')
    )
  const text = readFileSync(file, 'utf8')
  if (path.endsWith('.md')) return text
  // Four backquotes, because examples may show fences of three.
  return `${title}\`\`\`\`${LANGUAGES.get(extname(path)) ?? 'text'}\n${text}\n\`\`\`\`\n`
}

/** A file outside of fenced blocks, whose brackets are not links. */
function markdownOf(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '')
}
