import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { DefaultTheme } from 'vitepress'
import { beforeAll, describe, expect, test } from 'vitest'
import config from '../../docs/.vitepress/config.ts'
import { headingAnchor } from '../../docs/.vitepress/heading-anchor.ts'
import { llmsText } from '../../docs/.vitepress/llms-text.ts'
import { linkedFiles, siteLink } from '../../docs/.vitepress/repository-files.ts'
import { siteSections } from '../../docs/.vitepress/site-pages.ts'
import { PACKAGE_ENTRIES } from '../../tsup.config.ts'
import { ROOT } from './support/markdown.ts'

const DIST = join(ROOT, 'docs/.vitepress/dist')

function pagesIn(folder: string): string[] {
  return readdirSync(join(ROOT, 'docs', folder))
    .filter((name) => name.endsWith('.md') && name !== 'index.md')
    .map((name) => join('/', folder, name))
}

test('every page is in the sidebar once', () => {
  const sidebar = config.themeConfig?.sidebar as DefaultTheme.SidebarItem[]
  const links = sidebar.flatMap(({ items = [] }) => items.map(({ link }) => link))

  expect(links.sort()).toEqual([...pagesIn('.'), ...pagesIn('decisions')].sort())
})

test('llms.txt lists every page as it is now', async () => {
  const text = llmsText(siteSections())

  expect(text.match(/^- \[/gm)).toHaveLength(pagesIn('.').length + pagesIn('decisions').length)
  // A page without a sentence or a section has no line: then it wants an introduction.
  expect(text.match(/\): ?$/gm)).toBeNull()
  await expect(text).toMatchFileSnapshot('../../docs/public/llms.txt')
})

test('the reference covers the entries of the package', () => {
  const { entryPoints } = JSON.parse(readFileSync(join(ROOT, 'typedoc.json'), 'utf8')) as { entryPoints: string[] }
  const sources = PACKAGE_ENTRIES.map(({ source }) => source)

  expect(entryPoints, 'typedoc.json: entryPoints must list the sources of exports in package.json').toEqual(sources)
})

describe('a link', () => {
  test('within docs stays as it is', () => {
    for (const href of ['billing.md#guarantees', '#top', 'https://example.com/x', 'decisions/0011-sqlite.md'])
      expect(siteLink(href, 'models.md'), href).toBeUndefined()
  })

  test('leads to a page that shows another file of the repository', () => {
    expect(siteLink('../examples/express.mjs', 'getting-started.md')).toBe('/files/examples/express.mjs.html')
    expect(siteLink('../README.md#why', 'index.md')).toBe('/files/README.html#why')
    expect(siteLink('../../CONTRIBUTING.md', 'decisions/0011-sqlite.md')).toBe('/files/CONTRIBUTING.html')
  })

  test('in such a file leads back to the page', () => {
    expect(siteLink('docs/billing.md#guarantees', 'files/README.md')).toBe('/billing.md#guarantees')
    expect(siteLink('LICENSE', 'files/README.md')).toBe('/files/LICENSE.html')
  })

  test('is an error if its file does not exist', () => {
    expect(() => siteLink('../examples/none.mjs', 'models.md')).toThrow('docs/models.md links to ../examples/none.mjs')
  })
})

test('files that pages link to are shown as code', () => {
  const file = linkedFiles().find(({ path }) => path === 'examples/express.mjs')

  expect(file?.name).toBe('examples/express.mjs')
  expect(file?.content).toContain('````js\n')
  expect(file?.content).toContain(readFileSync(join(ROOT, 'examples/express.mjs'), 'utf8'))
})

test('anchors are those of code hosts', () => {
  expect(headingAnchor("OpenAI's image request")).toBe('openais-image-request')
  expect(headingAnchor('Who is asked, and when?')).toBe('who-is-asked-and-when')
})

describe('npm run docs', () => {
  const pages = new Map<string, string>()

  beforeAll(async () => {
    // The build is one for production, whatever the tests run as.
    const { NODE_ENV: _ours, ...env } = process.env
    await promisify(execFile)('npm', ['run', 'docs'], { cwd: ROOT, env })
    for (const path of readdirSync(DIST, { recursive: true, encoding: 'utf8' }))
      if (path.endsWith('.html') && !path.startsWith('api/'))
        pages.set(`/${path}`, readFileSync(join(DIST, path), 'utf8'))
  }, 180_000)

  test('builds a page of each guide, and of each entry in the reference', () => {
    const made = [...pagesIn('.'), ...pagesIn('decisions')].map((path) => path.replace(/md$/, 'html'))

    expect(made.filter((path) => !pages.has(path))).toEqual([])
    expect(readdirSync(join(DIST, 'api/modules')).sort()).toEqual(
      PACKAGE_ENTRIES.map(({ specifier }) => `${specifier.replaceAll('/', '_')}.html`).sort(),
    )
  })

  test('every link and anchor of the site leads somewhere', () => {
    const dead: string[] = []
    let anchors = 0
    for (const [path, html] of pages) {
      for (const [, href = ''] of html.matchAll(/<a\b[^>]*? href="([^"]*)"/g)) {
        if (/^[a-z]+:/.test(href)) continue
        const { pathname, hash } = new URL(href, `http://site${path}`)
        const target = decodeURI(pathname.endsWith('/') ? `${pathname}index.html` : pathname)
        if (hash !== '') anchors += 1
        const anchored = hash === '' || pages.get(target)?.includes(`id="${decodeURIComponent(hash.slice(1))}"`)
        if (!existsSync(join(DIST, target)) || anchored !== true) dead.push(`${path} -> ${href}`)
      }
    }

    expect(anchors).toBeGreaterThan(50)
    expect(dead).toEqual([])
  })

  test('llms.txt names Markdown that is there', () => {
    const links = [...readFileSync(join(DIST, 'llms.txt'), 'utf8').matchAll(/\]\((\/[^)]+)\)/g)]

    expect(links.length).toBeGreaterThan(20)
    expect(links.filter(([, path = '']) => !existsSync(join(DIST, path)))).toEqual([])
  })

  test('pages load nothing from elsewhere', () => {
    const loaded = /<(?:script|img|iframe)\b[^>]* src="https?:|<link\b[^>]* href="https?:/

    expect([...pages].filter(([, html]) => loaded.test(html)).map(([path]) => path)).toEqual([])
  })
})
