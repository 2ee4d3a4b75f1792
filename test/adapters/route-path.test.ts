import { describe, expect, it } from 'vitest'

import {
  isGatewayPath,
  locateGatewayPath,
  normalizeBasePath,
  pathBelow,
  pathOfTarget,
  queryOfTarget,
  routePath,
} from '../../src/adapters/route-path.ts'

describe('normalizeBasePath', () => {
  it.each([
    [undefined, undefined],
    ['/', ''],
    ['', ''],
    ['/ai', '/ai'],
    ['/ai/', '/ai'],
    ['ai', '/ai'],
    ['/api/v1/ai//', '/api/v1/ai'],
  ])('turns %j into %j', (given, expected) => {
    expect(normalizeBasePath(given)).toBe(expected)
  })
})

describe('a request target', () => {
  it.each([
    ['/v1/models', '/v1/models', ''],
    ['/v1/models?a=%2F&b', '/v1/models', 'a=%2F&b'],
    ['/v1/files/a%2Fb?x=1?2', '/v1/files/a%2Fb', 'x=1?2'],
    ['http://gateway.example/v1/models?x', '/v1/models', 'x'],
    ['http://gateway.example', '/', ''],
    ['/x?next=http://gateway.example/y', '/x', 'next=http://gateway.example/y'],
    ['*', '/*', ''],
  ])('%j has path %j and query %j', (target, path, query) => {
    expect([pathOfTarget(target), queryOfTarget(target)]).toEqual([path, query])
  })
})

describe('a path with a base path', () => {
  it.each([
    ['/ai/v1/models', '/ai', '/v1/models'],
    ['/ai', '/ai', '/'],
    ['/ai/', '/ai', '/'],
    ['/aix/v1/models', '/ai', undefined],
    ['/v1/models', '/ai', undefined],
    ['/AI/v1/models', '/ai', undefined],
    ['/v1/models', '', '/v1/models'],
    ['/ai/v1/a%2fb', '/ai', '/v1/a%2fb'],
  ])('%j below %j is %j', (path, basePath, expected) => {
    expect(pathBelow(path, basePath)).toBe(expected)
  })

  it('never reaches a route of the gateway from outside the base path', () => {
    expect(routePath('/other/v1/models', '/ai')).toBe('/other/v1/models')
    expect(routePath('/v1/models', '/ai')).toBe('/')
    expect(routePath('/healthz', '/ai')).toBe('/')
  })
})

describe('locateGatewayPath', () => {
  it.each([
    ['/v1/models', '/v1/models'],
    ['/ai/v1/models', '/v1/models'],
    ['/api/ai/v1/models/v1/x', '/v1/models/v1/x'],
    ['/ai/v1', '/v1'],
    ['/ai/healthz', '/healthz'],
    ['/ai/api/hello', '/api/hello'],
    ['/ai/mcp', '/mcp'],
    ['/ai/openapi.json', '/openapi.json'],
    ['/ai/xhealthz', '/ai/xhealthz'],
    ['/ai/v10/models', '/ai/v10/models'],
    ['/', '/'],
  ])('finds in %j the path %j', (path, expected) => {
    expect(locateGatewayPath(path)).toBe(expected)
  })
})

describe('isGatewayPath', () => {
  it('knows the API and the root paths, and nothing behind another prefix', () => {
    const own = ['/v1/models', '/v1', '/livez', '/readyz', '/healthz', '/api/hello', '/mcp', '/openapi.json']
    const foreign = ['/', '/v1x', '/ai/v1/models', '/healthz/x', '/api']

    expect(own.filter(isGatewayPath)).toEqual(own)
    expect(foreign.filter(isGatewayPath)).toEqual([])
  })
})
